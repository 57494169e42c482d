"""Channels: the ways by which an alert leaves. Here are only their names and where each lives; nothing is imported."""

BUILT_IN = {
    "apprise": "fleet.channels.apprise:Apprise",
    "console": "fleet.channels.console:Console",
    "discord": "fleet.channels.discord:Discord",
    "pager_duty": "fleet.channels.pager_duty:PagerDuty",
    "slack": "fleet.channels.slack:Slack",
    "webhook": "fleet.channels.webhook:Webhook",
}
"""The same names and places as the entry points of the package; a test holds the two together."""
