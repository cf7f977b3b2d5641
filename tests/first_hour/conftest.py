"""The server that runs the commands of the walks."""

from page_address import address

__all__ = ["address"]
