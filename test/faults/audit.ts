// Checks that a data folder contains every acknowledged write, and no refused or partial write.
// Reads the rows and files directly, even while a server is running.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { type Db, openStore } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'
import { type Answer, call, type Door, type Lead, type Load, patiently, sha256 } from './load.ts'

export interface Audit {
  /** Acknowledged writes that are missing or different. */
  lost: string[]
  /** Records without their dependents, and refused writes that exist. */
  half: string[]
  /** Findings of SQLite's integrity check. */
  corrupt: string[]
}

export const nothing: Audit = { lost: [], half: [], corrupt: [] }

export async function audit(dataDir: string, load: Load): Promise<Audit> {
  const store = openStore(`sqlite:${join(dataDir, 'accord.db')}`)
  try {
    const { db, dialect } = store
    const search = await searchIndex.findProblem(db, dialect)
    return {
      lost: [...(await lostLeads(db, load.leads)), ...(await lostFiles(db, dataDir, load))],
      half: [...(await halves(db, dataDir)), ...(await refusedButThere(db, load))],
      corrupt: [...(await dialect.integrityProblems(db as never)), ...(search === null ? [] : [search])],
    }
  } finally {
    await store.close()
  }
}

interface Event {
  id: number
  name: string
  after: string | null
}

/** Returns the newest event of each lead. */
async function newestEvents(db: Db): Promise<Map<number, Event>> {
  const { rows } = await sql<Event & { entity_id: number }>`
    select max(id) as id, entity_id, name, "after" from events where entity_type = 'leads' group by entity_id`.execute(
    db,
  )
  return new Map(rows.map(({ entity_id, ...event }) => [entity_id, event]))
}

async function lostLeads(db: Db, leads: readonly Lead[]): Promise<string[]> {
  const rows = await db.selectFrom('leads').select(['id', 'title', 'lead_value', 'version']).execute()
  const found = new Map(rows.map((row) => [row.id, row]))
  const events = await newestEvents(db)
  const words = await db
    .selectFrom('search_index')
    .select(['entity_id', 'title'])
    .where('entity_type', '=', 'leads')
    .execute()
  const titles = new Map(words.map(({ entity_id, title }) => [entity_id, title]))
  return leads.flatMap((lead) => {
    const row = found.get(lead.id)
    const event = events.get(lead.id)
    if (lead.isDeleted) {
      const isGone = row === undefined && event?.name === 'lead.delete.after' && !titles.has(lead.id)
      return isGone ? [] : [`Lead ${lead.id} was deleted, and is there or its event is not.`]
    }
    const after = JSON.parse(event?.after ?? '{}')
    const wanted = [lead.title, lead.value, lead.version]
    const seen = {
      row: [row?.title, Number(row?.lead_value) / 10_000, row?.version],
      event: [after.title, after.lead_value, after.version],
    }
    return Object.entries({ ...seen, search: [titles.get(lead.id), lead.value, lead.version] })
      .filter(([, each]) => JSON.stringify(each) !== JSON.stringify(wanted))
      .map(
        ([where, each]) => `Lead ${lead.id} is ${JSON.stringify(wanted)}, its ${where} says ${JSON.stringify(each)}.`,
      )
  })
}

async function lostFiles(db: Db, dataDir: string, { files }: Load): Promise<string[]> {
  const rows = await db.selectFrom('files').select(['id', 'name', 'sha256']).execute()
  const found = new Map(rows.map((row) => [row.id, row]))
  return files.flatMap(({ id, name, sha256 }) => {
    const row = found.get(id)
    return row?.name === name && row.sha256 === sha256 && isWhole(dataDir, sha256)
      ? []
      : [`File ${id} is not what was sent.`]
  })
}

function isWhole(dataDir: string, hash: string): boolean {
  try {
    return sha256(readFileSync(join(dataDir, 'files', hash.slice(0, 2), hash))) === hash
  } catch {
    return false
  }
}

async function halves(db: Db, dataDir: string): Promise<string[]> {
  const { rows } = await sql<{ sentence: string }>`
    select 'Lead ' || leads.id || ' has no event of its creation.' as sentence from leads where not exists
      (select 1 from events where entity_type = 'leads' and entity_id = leads.id and name = 'lead.create.after')
    union all select 'Lead ' || leads.id || ' is not whole.' from leads where
      (select count(*) from lead_products where lead_id = leads.id) <> 1
    union all select 'Lead ' || entity_id || ' is gone without an event.' from events where entity_type = 'leads'
      and name = 'lead.create.after' and entity_id not in (select id from leads) and not exists (select 1 from events as
      later where later.entity_type = 'leads' and later.entity_id = events.entity_id and later.name = 'lead.delete.after')
    union all select 'File ' || files.id || ' has no event of its creation.' from files where not exists
      (select 1 from events where entity_type = 'files' and entity_id = files.id)
    union all select 'Title ' || title || ' is there twice.' from leads group by title having count(*) > 1
    union all select 'File ' || name || ' is there twice.' from files group by name having count(*) > 1`.execute(db)
  const files = await db.selectFrom('files').select(['id', 'sha256']).execute()
  const bare = files
    .filter(({ sha256 }) => !isWhole(dataDir, sha256))
    .map(({ id }) => `File ${id} has not all its bytes.`)
  return [...rows.map(({ sentence }) => sentence), ...bare]
}

async function refusedButThere(db: Db, { refused }: Load): Promise<string[]> {
  const titles = await db.selectFrom('leads').select('title').execute()
  const names = await db.selectFrom('files').select('name').execute()
  return [...titles.map(({ title }) => title), ...names.map(({ name }) => name)]
    .filter((each) => refused.has(each))
    .map((each) => `${each} was refused and is there.`)
}

/**
 * Repeats writes that had no reply. Each must have happened once or happen now. Returns findings.
 */
export async function resolve(door: Door, load: Load): Promise<string[]> {
  const findings: string[] = []
  for (const what of [...load.pending]) {
    load.pending.delete(what)
    if (what.kind === 'update' || what.kind === 'delete') {
      const { status, body } = await patiently(() => call(door, 'GET', `/leads/${what.lead.id}`))
      findings.push(...decided(what.lead, what.kind === 'update' ? what : null, status, body.data))
      continue
    }
    const again = await patiently(() => load.send(door, what))
    if (again.status === 201) load.settle(what, again)
    else findings.push(`The retry of ${what.kind} was answered with ${again.status}: ${JSON.stringify(again.body)}`)
  }
  return findings
}

/** Records whether a change without a reply was made. It must be complete or absent. */
function decided(
  lead: Lead,
  to: { title: string; value: number } | null,
  status: number,
  now: Answer['body'],
): string[] {
  if (status === 404 && to === null) {
    lead.isDeleted = true
    return []
  }
  const isAs = (title: string, value: number, version: number): boolean =>
    now?.title === title && now.lead_value === value && now.version === version
  if (status === 200 && isAs(lead.title, lead.value, lead.version)) return []
  if (to && status === 200 && isAs(to.title, to.value, lead.version + 1)) {
    Object.assign(lead, { title: to.title, value: to.value, version: lead.version + 1 })
    return []
  }
  return [`Lead ${lead.id} is neither as before nor as after: ${JSON.stringify(now)}`]
}

/**
 * Compares the replies for some leads with their newest events, except fields that depend on the
 * day. Returns the differences.
 */
export async function shownOtherwise(door: Door, dataDir: string, leads: readonly Lead[]): Promise<string[]> {
  const store = openStore(`sqlite:${join(dataDir, 'accord.db')}`)
  const events = await newestEvents(store.db).finally(() => store.close())
  const findings: string[] = []
  for (const { id, isDeleted } of leads) {
    const { status, body } = await patiently(() => call(door, 'GET', `/leads/${id}`))
    if (isDeleted) {
      if (status !== 404) findings.push(`Lead ${id} was deleted and is shown.`)
      continue
    }
    const [shown, told] = [body.data, JSON.parse(events.get(id)?.after ?? '{}')].map((each) =>
      JSON.stringify({ ...each, rotten_days: 0, is_rotten: false }),
    )
    if (shown !== told) findings.push(`Lead ${id} is shown as ${shown}, its event says ${told}.`)
  }
  return findings
}
