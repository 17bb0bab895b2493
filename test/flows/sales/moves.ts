// Moves leads from the first stage to their final stage. Leads with the same stage and day move in
// one request, which reduces the number of requests to a tenth.
import { type Api, forEach, must } from './api.ts'
import type { Opportunity, Sales } from './data.ts'

/** Reports the progress of a step. `of` is its total. */
export type Report = (step: string, done: number, of: number) => void

/** The ids of loaded records by their name in the files. */
export type Ids = ReadonlyMap<string, number>

const maxPerMove = 100

export function idIn(ids: Ids, name: string): number {
  const id = ids.get(name)
  if (id === undefined) throw new Error(`${name} was not loaded.`)
  return id
}

/** Moves all leads, with one mass update for up to 100 leads of the same stage and day. */
export async function moveToStages(
  api: Api,
  { opportunities }: Sales,
  leads: Ids,
  stages: Ids,
  report: Report,
): Promise<void> {
  const together = new Map<string, Opportunity[]>()
  for (const deal of opportunities) {
    if (deal.stage === 'new') continue
    const key = `${deal.stage} ${deal.closedOn}`
    together.set(key, [...(together.get(key) ?? []), deal])
  }
  const moves = [...together.values()].flatMap((deals) =>
    Array.from({ length: Math.ceil(deals.length / maxPerMove) }, (_, part) =>
      deals.slice(part * maxPerMove, (part + 1) * maxPerMove),
    ),
  )
  const total = moves.flat().length
  let moved = 0
  report('moves', 0, total)
  await forEach(
    moves,
    async (deals) => {
      const [first] = deals
      if (!first) return
      // Without an offset, the time is in the time zone of the installation, so the day stays the
      // same.
      const closed = first.closedOn === null ? {} : { closed_at: `${first.closedOn} 00:00` }
      const { data } = await must(
        api.POST('/api/admin/leads/mass-update', {
          body: {
            ids: deals.map(({ id }) => idIn(leads, id)),
            changes: { lead_pipeline_stage_id: idIn(stages, first.stage), ...closed },
            atomic: false,
          },
        }),
      )
      const [failure] = data.failed
      if (failure) throw new Error(`Lead ${failure.id} could not be moved: ${failure.detail}`)
      moved += deals.length
    },
    () => report('moves', moved, total),
  )
}
