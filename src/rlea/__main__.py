"""What the command `rlea` and `python -m rlea` run."""


def main() -> None:
    """Run the command line; Ctrl-C is no traceback either while its modules are imported, which takes a moment."""
    try:
        from rlea.cli import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
