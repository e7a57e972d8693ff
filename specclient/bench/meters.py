"""Energy and memory, where the machine tells. What it does not tell is said, and not estimated."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")


@dataclass(slots=True)
class Meters:
    """Counters of the whole machine: RAPL for processors and memory, NVML for NVIDIA devices.

    They count everything that runs, so that they mean something only where the model runs on this
    machine and little else does. `missing` says which could not be read, and why.
    """

    packages: tuple[Path, ...] = ()
    devices: tuple[Any, ...] = ()
    nvml: Any = None
    missing: list[str] = field(default_factory=list)

    @classmethod
    def find(cls, powercap: Path = POWERCAP) -> Meters:
        """The meters that can be read here."""
        meters = cls()
        zones = sorted(powercap.glob("intel-rapl:?")) + sorted(powercap.glob("intel-rapl:??"))
        meters.packages = tuple(zone for zone in zones if _number(zone / "energy_uj") is not None)
        if not zones:
            meters.missing.append("energy of the processor (no RAPL counters on this machine)")
        elif not meters.packages:
            meters.missing.append(f"energy of the processor ({zones[0] / 'energy_uj'} may not be read)")
        meters._find_devices()
        return meters

    def _find_devices(self) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
            for handle in handles:
                pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        except ImportError:
            self.missing.append("energy of a GPU (pynvml is not installed)")
        except Exception as error:
            # NVML's errors are classes made at run time; none of them is a reason to fail a measurement.
            self.missing.append(f"energy of a GPU ({type(error).__name__})")
        else:
            self.nvml, self.devices = pynvml, tuple(handles)

    def read(self) -> Mapping[str, float]:
        """The counters now, in joules; only differences mean anything."""
        counters = {}
        for zone in self.packages:
            if (value := _number(zone / "energy_uj")) is not None:
                counters[f"rapl:{zone.name}"] = value / 1e6
        for number, handle in enumerate(self.devices):
            counters[f"nvml:{number}"] = self.nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3
        return counters

    def between(self, before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
        """Joules spent between two readings; None without meters. A counter that wrapped round is mended."""
        if not before:
            return None
        total = 0.0
        for name, value in before.items():
            spent = after[name] - value
            total += spent if spent >= 0 else spent + self._range(name)
        return total

    def _range(self, name: str) -> float:
        kind, _, zone = name.partition(":")
        sizes = {f"rapl:{path.name}": _number(path / "max_energy_range_uj") for path in self.packages}
        return (sizes.get(name) or 0) / 1e6 if kind == "rapl" and zone else 0.0

    def device_memory(self) -> int | None:
        """Bytes in use on all NVIDIA devices."""
        if not self.devices:
            return None
        return sum(int(self.nvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in self.devices)


def peak_memory() -> int | None:
    """The most memory that this process ever held, in bytes; None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
