"""Settings of `fleet serve`: where it listens, to whom, and how much it takes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fleet.config.section import END, Section

A_HOST = rf"^[A-Za-z0-9.:\[\]-]{{1,255}}{END}"


class Api(Section, frozen=True, kw_only=True):
    """How `fleet serve` listens."""

    host: Annotated[
        str,
        Meta(
            pattern=A_HOST,
            description="The address to listen on; anything but loopback needs tls_cert and tls_key.",
            extra={"expected": "an address or the name of one"},
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="The port to listen on; 0 takes a free one.")] = 7878
    names: Annotated[
        tuple[Annotated[str, Meta(pattern=A_HOST)], ...],
        Meta(description="Names, besides those of loopback, under which it may be asked for."),
    ] = ()
    origins: Annotated[
        tuple[Annotated[str, Meta(pattern=rf"^https?://[^/\s]+{END}")], ...],
        Meta(description="Origins of web pages that may use it; none but its own, if nothing is given."),
    ] = ()
    tls_cert: Annotated[str, Meta(description="A file with its certificate, in PEM; empty for plain HTTP.")] = ""
    tls_key: Annotated[str, Meta(description="A file with the certificate's private key, in PEM.")] = ""
    requests_per_second: Annotated[
        int, Meta(ge=1, le=1_000_000, description="How many requests of one token are answered in a second.")
    ] = 500
    max_streams: Annotated[
        int, Meta(ge=1, le=100_000, description="How many clients may follow the events at the same time.")
    ] = 1000
    max_body_kib: Annotated[
        int,
        Meta(ge=1, le=16384, description="The largest request that is read, in KiB, a spec included."),
    ] = 4096
