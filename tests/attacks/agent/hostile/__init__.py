"""An agent that performs one named attack: what a model with a shell, or its harness, could do."""
