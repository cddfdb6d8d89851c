"""Units of measurement: what each measures, and its size in the standard unit of its kind."""

from __future__ import annotations

import numpy as np
import polars as pl

NO_UNIT = 0
_KINDS = ("", "length", "area", "volume", "mass", "time", "speed", "temperature", "share", "power", "data")
# (kind, size in metres, square metres, litres, kilograms, seconds, metres per second, ..., spellings)
_UNITS = (
    ("length", 1e-3, "mm millimetre millimetres millimeter millimeters"),
    ("length", 1e-2, "cm centimetre centimetres centimeter centimeters"),
    ("length", 1.0, "m metre metres meter meters"),
    ("length", 1e3, "km kilometre kilometres kilometer kilometers"),
    ("length", 0.0254, "in inch inches"),
    ("length", 0.3048, "ft foot feet"),
    ("length", 0.9144, "yd yard yards"),
    ("length", 1609.344, "mi mile miles"),
    ("length", 1852.0, "nmi nauticalmile nautical-mile nautical-miles"),
    ("area", 1.0, "m² m2 squaremetre squaremeter sqm"),
    ("area", 1e4, "ha hectare hectares"),
    ("area", 1e6, "km² km2 squarekilometre squarekilometer sqkm"),
    ("area", 4046.8564224, "acre acres"),
    ("area", 2589988.110336, "mi² mi2 squaremile sqmi"),
    ("volume", 1e-3, "ml millilitre millilitres milliliter milliliters"),
    ("volume", 1.0, "litre litres liter liters"),
    ("volume", 1e3, "m³ m3 cubicmetre cubicmeter"),
    ("mass", 1e-3, "g gram grams gramme grammes"),
    ("mass", 1.0, "kg kilogram kilograms kilogramme kilogrammes"),
    ("mass", 1e3, "tonne tonnes"),
    ("mass", 0.45359237, "lb lbs pound pounds"),
    ("mass", 0.028349523125, "oz ounce ounces"),
    ("time", 1.0, "s sec second seconds"),
    ("time", 60.0, "min minute minutes"),
    ("time", 3600.0, "h hr hour hours"),
    ("time", 86400.0, "day days"),
    ("speed", 1.0, "m/s metrepersecond"),
    ("speed", 1 / 3.6, "km/h kmh kilometreperhour"),
    ("speed", 0.44704, "mph mileperhour"),
    ("temperature", 1.0, "°C degreecelsius"),
    ("temperature", 5 / 9, "°F degreefahrenheit"),
    ("share", 0.01, "% percent"),
    ("power", 1.0, "watt watts"),
    ("power", 1e3, "kW kilowatt kilowatts"),
    ("power", 1e6, "MW megawatt megawatts"),
    ("data", 1.0, "byte bytes"),
    ("data", 1e6, "MB megabyte megabytes"),
)
_FREEZING = 32.0  # water, in degrees Fahrenheit; degrees Celsius count from there

# Factors by which the numbers of two corresponding attributes may differ, each way: one graph writes 1.80 and means
# metres, the other 180 and means centimetres.
_SCALES = (10.0, 100.0, 1e3, 1e4, 1e6, 60.0, 3600.0, 86400.0)
_RATIOS = (*_SCALES, 0.0254, 2.54, 0.3048, 30.48, 1.609344, 1609.344, 0.45359237, 453.59237, 2.58998811, 2589988.11)
FACTORS = np.array(
    sorted(
        {factor for ratio in _RATIOS for factor in (ratio, 1 / ratio)},
        key=lambda factor: (max(factor, 1 / factor), factor),
    )
)

_DATATYPES = r"^http://dbpedia\.org/datatype/(.+)$"
_NUMBER = r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
_MEASURED = rf"^({_NUMBER})\s*([^0-9\s.,][^\s.]*)\.?$"
_FEET_AND_INCHES = (
    r"""^([0-9]{1,3})\s*(?:ft|feet|foot|'|′)\.?\s*([0-9]{1,2}(?:\.[0-9]+)?)\s*(?:in|inch|inches|"|″|'')\.?$"""
)


def measure(literals: pl.DataFrame) -> pl.DataFrame:
    """The columns `written`, `measured` (Float64) and `unit` (Int16) for rows with `value`, `datatype` and `number`.

    `number` is the value as a number where it has no unit, else null. `written` is the number as it is written,
    `measured` the same in the standard unit of its kind (metres, kilograms, seconds, ...); both are null where there is
    no number. `unit` is the kind, 0 where no unit is known.
    """
    rows = [
        (spelling, _KINDS.index(kind), factor, -_FREEZING if "°F" in spellings else 0.0)
        for kind, factor, spellings in _UNITS
        for spelling in spellings.split()
    ]
    schema = {"name": pl.String, "kind": pl.Int16, "factor": pl.Float64, "offset": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    text = pl.col("value").str.strip_chars()
    tail = text.str.extract_groups(_MEASURED)
    tall = text.str.extract_groups(_FEET_AND_INCHES)
    name = pl.coalesce(
        tail.struct.field("2"),
        pl.when(pl.col("number").is_not_null()).then(pl.col("datatype").str.extract(_DATATYPES, 1)),
    )
    frame = literals.select(
        # "10 M" is not a length and "3D" not a time, so short spellings are case-sensitive.
        pl.when(name.str.len_chars() > 3).then(name.str.to_lowercase()).otherwise(name).alias("name"),
        tail.struct.field("1").str.replace_all(",", "", literal=True).cast(pl.Float64, strict=False).alias("head"),
        (tall.struct.field("1").cast(pl.Float64) + tall.struct.field("2").cast(pl.Float64) / 12).alias("feet"),
        "number",
    ).join(table, on="name", how="left", maintain_order="left")
    known = pl.col("kind").is_not_null()
    written = pl.coalesce("feet", pl.when(known).then(pl.coalesce("head", "number")), "number")
    return frame.select(
        written.alias("written"),
        pl.when(pl.col("feet").is_not_null())
        .then(pl.col("feet") * 0.3048)
        .when(known)
        .then((written + pl.col("offset")) * pl.col("factor"))
        .otherwise(written)
        .alias("measured"),
        pl.when(pl.col("feet").is_not_null())
        .then(_KINDS.index("length"))
        .otherwise(pl.col("kind").fill_null(NO_UNIT))
        .cast(pl.Int16)
        .alias("unit"),
    )
