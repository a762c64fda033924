/** How full vaults are, as bars: what was paid, what is held, what is left. */
import { type Currency, Money } from "@purser/core"
import type { Vault } from "@purser/spend-cap-proxy"

const width = 30

/** One line for each vault. */
export const gaugeLines = (vaults: ReadonlyArray<Vault>, stateOf: (vault: Vault) => string): string =>
  vaults.map((vault) => {
    const cells = (minor: number) => Math.min(width, Math.ceil(minor * width / vault.capMinor))
    const paid = cells(vault.paidMinor)
    const held = Math.min(width - paid, cells(vault.heldMinor))
    const money = (minor: number) => Money.formatMinor(minor, vault.currency as Currency)
    const bar = "█".repeat(paid) + "▒".repeat(held) + "·".repeat(width - paid - held)
    return `${vault.id} ${vault.billingPeriod} ${bar} ${money(vault.paidMinor)} paid, ${money(vault.heldMinor)} held of ${money(vault.capMinor)} ${vault.currency}, ${
      vault.payments
    } payments, ${vault.calls} calls, ${stateOf(vault)}`
  }).join("\n")
