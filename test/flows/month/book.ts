// The team's own book of the month: the value and the owner of each lead, and each win and loss. It
// adds up in cents and never asks the server, so the figures of the server can be compared with it.

/** One lead in the book. */
export interface Deal {
  id: number
  cents: number
  owner: string | null
}

/** One entry: a lead that was won or lost, with the value and the owner of that moment. */
export interface Entry {
  id: number
  kind: 'won' | 'lost'
  cents: number
  owner: string | null
  /** The month in the time zone of the team, such as `2026-03`. */
  month: string
}

export interface Figures {
  won: { count: number; value: number }
  lost: { count: number; value: number }
  /** The value won by each user. Leads without an owner stand under an empty name. */
  byUser: Record<string, number>
}

const zone = 'Europe/Berlin'

/** Returns the month of a moment in the time zone of the team. */
export const monthOf = (at: Date): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: zone, year: 'numeric', month: '2-digit' }).format(at)

export function openBook() {
  const deals = new Map<number, Deal>()
  const entries: Entry[] = []
  const deal = (id: number): Deal => {
    const found = deals.get(id)
    if (!found) throw new Error(`The book has no lead ${id}.`)
    return found
  }
  return {
    deals,
    deal,
    add(id: number, value: number, owner: string | null): void {
      deals.set(id, { id, cents: Math.round(value * 100), owner })
    },
    handOver(id: number, owner: string): void {
      deal(id).owner = owner
    },
    close(id: number, kind: Entry['kind'], at: Date): void {
      const { cents, owner } = deal(id)
      entries.push({ id, kind, cents, owner, month: monthOf(at) })
    },
    /** Returns the figures of one month. */
    figures(month: string): Figures {
      const inMonth = entries.filter((entry) => entry.month === month)
      const total = (kind: Entry['kind']) => {
        const found = inMonth.filter((entry) => entry.kind === kind)
        return { count: found.length, value: found.reduce((sum, { cents }) => sum + cents, 0) / 100 }
      }
      const byUser = new Map<string, number>()
      for (const { kind, owner, cents } of inMonth)
        if (kind === 'won') byUser.set(owner ?? '', (byUser.get(owner ?? '') ?? 0) + cents)
      return {
        won: total('won'),
        lost: total('lost'),
        byUser: Object.fromEntries([...byUser].sort().map(([name, cents]) => [name, cents / 100])),
      }
    },
  }
}

export type Book = ReturnType<typeof openBook>
