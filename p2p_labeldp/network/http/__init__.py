"""How a message travels: one signed POST and its signed answer, on a connection of their own.

``HttpServer`` (server, on ``connection``) tells a handler who sent what, ``HttpClient`` (client, on ``posting``) brings
back what the peer asked has answered to exactly this question; what both agree on is in ``profile`` and ``head``, how
often anybody may ask in ``rates``. The signatures are those of ``crypto.signatures``. Neither side
hands on a byte that does not verify.
"""

from p2p_labeldp.network.http.client import HttpClient, Refused
from p2p_labeldp.network.http.profile import CONTENT_TYPE, MAX_BODY_BYTES, ROUTE
from p2p_labeldp.network.http.rates import Rate
from p2p_labeldp.network.http.server import HttpServer

__all__ = ["CONTENT_TYPE", "MAX_BODY_BYTES", "ROUTE", "HttpClient", "HttpServer", "Rate", "Refused"]
