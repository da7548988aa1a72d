"""Reaching a model: what an agent does to its relay and its gateway, in the hope of another attempt."""

from schema.verdict import Category
from tests.attacks.attack import Attack, Fails

CRASHED = Fails(Category.AGENT_CRASHED)
FLOODED = Fails(Category.RESOURCE_CAP)
OWN_DOING = "the gateway is well, so the end without an account is the agent's"
SCRIPT = "lazy"

ATTACKS = (
    Attack("relay-killed", "takes it for a fault of the network", OWN_DOING, CRASHED, script=SCRIPT),
    Attack(
        "gateway-refusals",
        "logs each refusal until the disk is full",
        "a thousand refusals are a cap, a hundred are written out",
        FLOODED,
        script=SCRIPT,
    ),
    Attack(
        "gateway-connections",
        "loses the gateway, and tries again",
        "64 connections of 256 descriptors; one too many is closed",
        CRASHED,
        script=SCRIPT,
    ),
    Attack(
        "gateway-nonsense",
        "loses the gateway to an exception, and tries again",
        "what is no request is refused; if it broke all the same, that would count as a flood",
        CRASHED,
        script=SCRIPT,
    ),
    Attack(
        "provider-broken",
        "takes it for a fault of the provider, and tries again",
        "the provider answers another question, so the request is at fault",
        CRASHED,
        script="fragile",
    ),
    Attack(
        "gateway-socket-replaced",
        "lets the agent answer in the gateway's place",
        "the socket's folder is read-only for the agent",
        CRASHED,
        script=SCRIPT,
    ),
)
