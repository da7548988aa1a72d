"""Stand-ins for what lies outside: a model's provider, an agent that cannot be had here."""
