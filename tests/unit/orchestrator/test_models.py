"""Model ids: resolved through the committed tables, refused in one line."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.models import Route, gateway_config, require_price, route
from orchestrator.project import Project
from schema.errors import UsageError
from schema.pricing import Price
from schema.task import Caps

PROJECT = Project(Path(__file__).parents[3])
KEYS = {
    "OPENAI_API_KEY": "k1",
    "ANTHROPIC_API_KEY": " k2\n",
    "GROQ_API_KEY": "k3",
    "OPENROUTER_API_KEY": "k4",
}
CAPS = Caps(turns=40, wall_clock_sec=900)


def config(model: str, protocol: str = "openai-chat", caps: Caps = CAPS, **options: Any) -> Any:
    """What the gateway would be told."""
    return gateway_config(route(PROJECT, model), protocol, caps, KEYS, **options)


@pytest.mark.parametrize(
    ("model", "name", "network", "segment", "priced"),
    [
        ("openai:gpt-5-mini", "gpt-5-mini", "bridge", "api", True),
        ("anthropic:claude-opus-5-5", "claude-opus-5-5", "bridge", "api", True),
        ("openrouter:qwen/qwen3-coder:free", "qwen/qwen3-coder:free", "bridge", "open-weight-hosted", False),
        ("compat:openai/gpt-oss-120b@groq", "openai/gpt-oss-120b", "bridge", "open-weight-hosted", True),
        ("local:smollm2-135m", "smollm2-135m", "host", "open-weight-self-hosted", False),
        ("scripted:perfect", "perfect", "none", "provider-free", False),
    ],
)
def test_ids_resolve(model: str, name: str, network: str, segment: str, priced: bool) -> None:
    found = route(PROJECT, model)
    assert (found.name, found.provider.network, found.segment) == (name, network, segment)
    assert bool(found.price and found.price.rates) is priced and found.table_version


@pytest.mark.parametrize(
    ("model", "segment"),
    [
        ("openrouter:anthropic/claude-opus-5", "api"),
        ("openrouter:google/gemini-3.8-flash", "api"),
        ("openrouter:google/gemma-4-31b", "open-weight-hosted"),
        ("openrouter:openai/gpt-5", "api"),
        ("openrouter:openai/gpt-oss-120b:free", "open-weight-hosted"),
        ("openrouter:x-ai/grok-4.7", "api"),
        ("compat:openai/gpt-oss-120b@groq", "open-weight-hosted"),
        ("openai:gpt-5-nobody-has-priced", "api"),
    ],
)
def test_a_model_without_a_row_has_the_segment_that_its_name_tells(model: str, segment: str) -> None:
    """Naive: the provider's; closed models that a router resells stand among open weights."""
    assert route(PROJECT, model).segment == segment


def test_a_row_goes_before_what_a_name_tells() -> None:
    found = route(PROJECT, "openrouter:openai/gpt-5")
    own = Price(input=1, output=2, segment="saved-login", pinning="weak")
    assert replace(found, price=own).segment == "saved-login"


@pytest.mark.parametrize(
    "model",
    [
        "gpt-5",
        "openai:",
        ":x",
        "nobody:x",
        "compat:x",
        "compat:x@nowhere",
        "compat:@groq",
        "openai:a b",
        "openai:../x",
    ],
)
def test_ids_that_nothing_serves_are_one_line(model: str) -> None:
    with pytest.raises(UsageError) as told:
        route(PROJECT, model)
    assert "\n" not in str(told.value) and "use " in str(told.value)


def test_the_gateway_is_told_what_it_needs() -> None:
    told = config("openai:gpt-5-mini", caps=Caps(turns=3, wall_clock_sec=9, tokens=10, usd=0.1))
    assert told.protocols == ["openai-chat", "openai-responses"] and told.model == "gpt-5-mini"
    assert told.max_tokens_field == "max_completion_tokens"
    assert (told.caps.turns, told.caps.tokens, told.caps.micro_usd) == (3, 10, 100_000)
    assert told.key.get_secret_value() == "k1" and "k1" not in repr(told)
    assert config("anthropic:claude-opus-5", "anthropic-messages").key.get_secret_value() == "k2"


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "scripted:perfect"])
def test_an_agent_that_speaks_responses_is_served_them(model: str) -> None:
    assert "openai-responses" in config(model, "openai-responses").protocols


def test_a_socket_is_reached_without_a_network() -> None:
    told = config("scripted:perfect")
    assert (told.upstream_socket, told.base_url, told.key) == (
        "/provider/provider.sock",
        "http://provider/v1",
        None,
    )


def test_a_missing_key_is_one_line_that_names_the_variable() -> None:
    with pytest.raises(UsageError, match="set MISTRAL_API_KEY"):
        config("compat:mistral-large@mistral")


def test_a_protocol_that_the_provider_does_not_speak_is_refused() -> None:
    with pytest.raises(UsageError, match="speaks openai-chat, the agent speaks anthropic-messages"):
        config("compat:openai/gpt-oss-120b@groq", "anthropic-messages")
    with pytest.raises(UsageError, match="speaks openai-chat, the agent speaks openai-responses"):
        config("openrouter:qwen/qwen3-coder", "openai-responses")
    with pytest.raises(UsageError, match="speaks nothing"):
        config("solution:gold")


@pytest.mark.parametrize("model", ["openrouter:unknown/model", "local:smollm2-135m", "scripted:perfect"])
def test_a_budget_needs_a_price(model: str) -> None:
    with pytest.raises(UsageError, match="a cap on USD cannot be kept"):
        config(model, suite_micro_usd=5)
    with pytest.raises(UsageError, match="a cap on USD cannot be kept"):
        require_price(route(PROJECT, model))


def test_certificates_and_proxies_go_only_to_gateways_that_leave_the_host(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("PEM")
    seen = {**KEYS, "SSL_CERT_FILE": str(file), "HTTPS_PROXY": "http://proxy:1"}
    away, home = route(PROJECT, "openai:gpt-5"), route(PROJECT, "local:x")
    assert isinstance(away, Route)
    told = gateway_config(away, "openai-chat", CAPS, seen)
    assert (told.ca_certificates, told.proxy) == ("PEM", "http://proxy:1")
    told = gateway_config(home, "openai-chat", CAPS, seen)
    assert (told.ca_certificates, told.proxy) == (None, None)
    with pytest.raises(UsageError, match="unset SSL_CERT_FILE"):
        gateway_config(away, "openai-chat", CAPS, {**seen, "SSL_CERT_FILE": "/nowhere"})


SERVED = json.loads((PROJECT.root / "scripts/local/models.json").read_text())


@pytest.mark.parametrize("name", SERVED)
def test_a_model_that_the_script_serves_is_pinned_and_has_no_price(name: str) -> None:
    found = route(PROJECT, f"local:{name}")
    assert found.name == name and found.price is not None
    assert (found.segment, found.price.pinning, found.price.rates) == (
        "open-weight-self-hosted",
        "strong",
        None,
    )
    lock = (PROJECT.root / "scripts/local/requirements.lock").read_text()
    wheel = SERVED[name]["package"].replace("_", "-")
    assert re.search(rf"^{wheel}==\S+ \\\n    --hash=sha256:[0-9a-f]{{64}}$", lock, re.M)
    assert re.fullmatch("[0-9a-f]{64}", SERVED[name]["sha256"])
