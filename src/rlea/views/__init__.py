"""What people look at: terminal, report, explanations."""
