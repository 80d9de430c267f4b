"""String types of the scenario that are validated as quantities, according to the formats of the JSON Schema."""

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import Bdps, PacketCount, PerSecond, Rtts

ParsedQuantity = int | Bdps | PacketCount | PerSecond | Rtts | None
"""Parsed value of a quantity's text; None: unlimited."""

PARSERS: dict[str, Callable[[str], ParsedQuantity]] = {
    "rate": quantities.rate,
    "size": quantities.size,
    "time": quantities.time,
    "time-or-rtt": quantities.time_or_rtt,
    "buffer": quantities.buffer,
    "size-or-unlimited": quantities.size_or_unlimited,
    "arrival-rate": quantities.arrival_rate,
}


def _checked(format_: str) -> AfterValidator:
    def check(text: str) -> str:
        try:
            PARSERS[format_](text)
        except quantities.QuantityError as error:
            raise PydanticCustomError("quantity", "{why}", {"why": str(error), "format": format_}) from None
        return text

    return AfterValidator(check)


Rate = Annotated[str, _checked("rate")]
Size = Annotated[str, _checked("size")]
Time = Annotated[str, _checked("time")]
TimeOrRtt = Annotated[str, _checked("time-or-rtt")]
Buffer = Annotated[str, _checked("buffer")]
SizeOrUnlimited = Annotated[str, _checked("size-or-unlimited")]
ArrivalRate = Annotated[str, _checked("arrival-rate")]

EXPECTED = {
    "rate": 'a rate with its unit, such as "40Mbps" or "1Gbps"',
    "size": 'a size with its unit, such as "100kB" or "4MiB"',
    "time": 'a time with its unit, such as "45ms" or "1.5s"',
    "time-or-rtt": 'a time with its unit, such as "45ms" or "1rtt"',
    "buffer": 'a size, bandwidth-delay products or packets, such as "100kB", "0.5bdp" or "240packets"',
    "size-or-unlimited": 'a size with its unit, such as "30MB", or "unlimited"',
    "arrival-rate": 'arrivals per second or the load they offer, such as "20/s" or "10Mbps"',
}

UNITS = {
    "rate": (*quantities.RATES,),
    "size": (*quantities.SIZES,),
    "time": (*quantities.TIMES,),
    "time-or-rtt": (*quantities.TIMES, "rtt"),
    "buffer": (*quantities.SIZES, "bdp", "packets"),
    "size-or-unlimited": (*quantities.SIZES,),
    "arrival-rate": (*quantities.RATES, "/s"),
}
