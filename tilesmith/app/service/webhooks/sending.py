"""Requests to addresses that somebody else has chosen: to public ones only, and to the one that was looked at.

A name is resolved once, every address that it has is checked, and the connection goes to one of these: a name that
means another machine a moment later leads nowhere. Redirects are not followed, proxies are not asked, the answer is
not read.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tilesmith.app.service.errors import ApiError

TIMEOUT_S = 10.0
HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Resolve = Callable[[str, int], list[str]]


def checked(url: str, private: bool) -> httpx.URL:
    """The URL of a webhook. ApiError `address_refused`, which says why."""
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ApiError("address_refused", f"the address is no URL: {error}") from None
    if found.scheme != "https" and not (private and found.scheme == "http"):
        raise ApiError("address_refused", "the address has to begin with https://")
    named = HOST_NAME.fullmatch(found.raw_host.decode("ascii")) is not None
    if not (named or _is_address(found.host)) or found.userinfo or found.fragment:
        raise ApiError("address_refused", "the address needs a host, and may have no user and no fragment")
    if not private and _is_address(found.host) and not public(found.host):
        raise ApiError("address_refused", "the address is a private one (setting private_webhooks)")
    return found


def post(url: str, body: bytes, headers: Mapping[str, str], private: bool, resolve: Resolve | None = None) -> int:
    """The status of the answer. ApiError `address_refused`; httpx.HTTPError or OSError where nobody answers."""
    found = checked(url, private)
    port = found.port or (443 if found.scheme == "https" else 80)
    addresses = (resolve or _addresses)(found.host, port)
    if not private and not all(public(a) for a in addresses):
        raise ApiError("address_refused", "the host has a private address (setting private_webhooks)")
    sent = {**headers, "Host": found.netloc.decode("ascii"), "Content-Type": "application/json"}
    extensions: dict[str, Any] = {"sni_hostname": found.raw_host.decode("ascii")}
    with (
        httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream(
            "POST", found.copy_with(host=addresses[0]), content=body, headers=sent, extensions=extensions
        ) as answer,
    ):
        return answer.status_code


def public(address: str) -> bool:
    """True if an address is one of the internet, and so is the IPv4 address that it may stand for."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        teredo = found.teredo[1] if found.teredo else None
        inner = found.ipv4_mapped or found.sixtofour or teredo
        if inner is None and found in NAT64:
            inner = ipaddress.IPv4Address(found.packed[-4:])
        if inner is not None and not public(str(inner)):
            return False
        if found.ipv4_mapped is not None:
            return True
    return found.is_global and not found.is_multicast


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(f[4][0]).partition("%")[0] for f in found))
