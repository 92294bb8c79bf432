"""What crosses MQTT, and what every tier must agree on."""
