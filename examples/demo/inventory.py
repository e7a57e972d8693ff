"""A small stock list: what lies in which bin, and what has to be ordered again."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Item:
    """One article and how much of it there is."""

    sku: str
    name: str
    count: int
    price_cents: int
    reorder_at: int = 10

    def total(self) -> int:
        """Value of the stock of this item in cents."""
        return self.count * self.price_cents

    def is_low(self) -> bool:
        """Whether it is time to order more."""
        return self.count <= self.reorder_at


class Inventory:
    """All items, by their stock keeping unit."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}

    def add(self, item: Item) -> None:
        """Add an item, or raise the count of one that is there."""
        known = self._items.get(item.sku)
        if known is None:
            self._items[item.sku] = item
        else:
            known.count += item.count

    def remove(self, sku: str, count: int) -> None:
        """Take `count` pieces out; a ValueError if there are fewer."""
        item = self._items[sku]
        if count > item.count:
            raise ValueError(f"only {item.count} of {sku} in stock")
        item.count -= count

    def low_items(self) -> list[Item]:
        """Everything that has to be ordered, the scarcest first."""
        low = [item for item in self._items.values() if item.is_low()]
        return sorted(low, key=lambda item: item.count)

    def total(self) -> int:
        """Value of the whole stock in cents."""
        return sum(item.total() for item in self._items.values())


def load(path: Path) -> Inventory:
    """Read a CSV file with the columns sku, name, count, price_cents."""
    inventory = Inventory()
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            item = Item(row["sku"], row["name"], int(row["count"]), int(row["price_cents"]))
            inventory.add(item)
    return inventory
