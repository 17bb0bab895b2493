// Visibility: every operation on a single record, for records of the caller, a group mate, an
// outsider and no owner, in every view. A hidden record is 404 and is not changed. A visible record
// is returned.
import { beforeAll, describe, it } from 'vitest'
import { fact, facts, takesHeader } from '../support/schema.ts'
import {
  asHadBy,
  give,
  giveSome,
  type Owner,
  owners,
  type People,
  people,
  scopeOf,
  scopes,
  seesFor,
  type View,
  views,
} from './matrix.scope.ts'
import { type Cells, isFull, keep, untouched } from './matrix.ts'
import { type Request, request, send, type World } from './support.ts'

const massOf = (id: string): string => /\/([\w-]+)\/mass-\w+$/.exec(fact(id).path)?.[1] ?? ''
const scoped = facts.map(([id]) => id)
const ofOne = (entity: string): string[] => scoped.filter((id) => scopeOf(id) === entity)
const ofMany = (entity: string): string[] => scoped.filter((id) => massOf(id) === entity)

export function recordCells(of: () => World, cells: Cells): void {
  let who: People
  let own: World

  beforeAll(async () => {
    await of().server.rewind()
    who = await people(of())
    own = asHadBy(of(), who)
  })

  // The short run skips records that a narrower view already shows.
  const isMore = (view: View, owner: Owner): boolean =>
    isFull ||
    view === 'individual' ||
    (view === 'group' ? owner !== 'caller' : owner === 'outsider' || owner === 'none')
  const states = views.flatMap((view) =>
    owners.filter((owner) => isMore(view, owner)).map((owner) => ({ view, owner })),
  )
  describe.each(states)('$view view, records of $owner', ({ view, owner }) => {
    let token: string
    beforeAll(async () => {
      token = await who.seeing(view)
      await give(own, owner === 'none' ? null : who[owner])
      await giveSome(own, { files: who.upload }, who.caller)
      await keep(own)
    })

    it.each(Object.keys(scopes).filter((entity) => owner !== 'none' || !scopes[entity]?.isAlwaysOwned))(
      'of %s',
      async (entity) => {
        for (const id of ofOne(entity)) {
          const name = `${id} of ${owner}, ${view} view`
          const wanted = asked(id, token)
          if (seesFor(id, entity)(view, owner)) await answers(name, id, wanted)
          else await untouched(cells, name, own, () => isNotThere(name, id, wanted))
        }
        for (const id of ofMany(entity)) {
          const name = `${id} of ${owner}, ${view} view`
          const wanted = asked(id, token)
          if (seesFor(id, entity)(view, owner)) await answers(name, id, wanted)
          else await untouched(cells, name, own, () => isNotAmong(name, id, wanted))
        }
        cells.settle()
      },
    )
  })

  function asked(id: string, token: string): Request {
    const wanted = request(own, id)
    if (wanted.body?.file_id !== undefined) wanted.body.file_id = who.upload
    return { ...wanted, token }
  }

  /** Expects 404, even with an invalid body or a wrong version. */
  async function isNotThere(name: string, id: string, wanted: Request): Promise<void> {
    const { status, body } = await send(own, id, wanted)
    cells.check(name, [status, body?.code], [404, 'not_found'])
    if (fact(id).method === 'get') return
    const headers: Record<string, string> = takesHeader(id, 'If-Match') ? { 'if-match': '"999"' } : {}
    const broken = { ...wanted, headers, ...(wanted.body !== undefined && { body: { nonsense: 1 } }) }
    cells.check(`${name}, with a wrong body or version`, (await send(own, id, broken)).status, 404)
  }

  async function isNotAmong(name: string, id: string, wanted: Request): Promise<void> {
    const { status, body } = await send(own, id, wanted)
    const failed = body?.failed?.map((each: { status: number }) => each.status)
    cells.check(name, [status, body?.code, failed], [422, 'mass_failed', [404]])
  }

  /** Expects success for a visible record, and restores the world. */
  async function answers(name: string, id: string, wanted: Request): Promise<void> {
    const isTried = takesHeader(id, 'Accord-Dry-Run')
    const headers: Record<string, string> = isTried ? { 'accord-dry-run': 'true' } : {}
    const { status, text } = await send(own, id, { ...wanted, headers })
    const expected = isTried ? 200 : fact(id).status
    cells.check(name, status === expected ? status : `${status} ${text}`, expected)
    if (fact(id).method !== 'get' && !isTried) await own.server.rewind()
  }
}
