// Visibility: every operation on a single record, for records of the caller, a group mate, an
// outsider and no owner, in every view. A hidden record is 404 and is not changed. A visible record
// is returned.
import { sql } from 'kysely'
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

/** Operations on deleted records that a lead does not show, and on records of no lead. */
const unreached = [
  ...['restoreActivity', 'restoreEmail', 'reviseQuote', 'convertLeadToQuote'],
  ...['mergePersons', 'unmergePerson', 'mergeOrganizations', 'unmergeOrganization'],
]

/** Links the records to leads, and gives these leads to a user. */
async function reach({ server: { store }, main, spare, gone, trashed }: World, user: number): Promise<void> {
  const { db } = store
  await sql`update leads set user_id = ${user}`.execute(db)
  for (const ids of [main, { ...main, ...spare }]) {
    const { leads, persons, organizations, quotes, activities, emails } = ids as Record<string, number>
    await sql`update leads set person_id = ${persons} where id = ${leads}`.execute(db)
    await sql`update persons set organization_id = ${organizations} where id = ${persons}`.execute(db)
    await sql`insert into lead_quotes (lead_id, quote_id) values (${leads}, ${quotes}) on conflict do nothing`.execute(
      db,
    )
    await sql`insert into lead_activities (lead_id, activity_id) values (${leads}, ${activities}) on conflict do nothing`.execute(
      db,
    )
    await sql`update emails set lead_id = ${leads} where id in (${emails}, ${trashed.emails ?? 0})`.execute(db)
  }
  const owners = JSON.stringify([user])
  for (const entity of ['persons', 'organizations', 'quotes'])
    for (const table of ['events', 'archives'])
      await sql`update ${sql.table(table)} set lead_owners = ${owners}
        where entity_type = ${entity} and entity_id = ${gone[entity]}`.execute(db)
  await sql`update events set owner_id = ${user} where entity_type = 'leads'`.execute(db)
  await sql`update archives set owner_id = ${user} where entity_type = 'leads'`.execute(db)
}

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

  describe('individual view, records of outsider that a lead of caller reaches', () => {
    let token: string
    beforeAll(async () => {
      await own.server.rewind()
      token = await who.seeing('individual')
      await give(own, who.outsider)
      await giveSome(own, { files: who.upload }, who.caller)
      await reach(own, who.caller)
      await keep(own)
    })

    it.each(['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'])('of %s', async (entity) => {
      const ofSome = [...ofOne(entity), ...ofMany(entity)].filter((id) => !unreached.includes(id))
      for (const id of ofSome)
        await answers(`${id} of outsider, reached by a lead`, id, asked(id, token), entity === 'persons')
      cells.settle()
    })
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
  async function answers(name: string, id: string, wanted: Request, isInUse = false): Promise<void> {
    const isTried = takesHeader(id, 'Accord-Dry-Run')
    const headers: Record<string, string> = isTried ? { 'accord-dry-run': 'true' } : {}
    const { status, text } = await send(own, id, { ...wanted, headers })
    // The lead refers to the person.
    const isKept = isInUse && /elete/.test(id) && /\/(\{id\}|mass-delete)$/.test(fact(id).path)
    const expected = isKept ? (id.startsWith('mass') ? 422 : 409) : isTried ? 200 : fact(id).status
    cells.check(name, status === expected ? status : `${status} ${text}`, expected)
    if (fact(id).method !== 'get' && !isTried) await own.server.rewind()
  }
}
