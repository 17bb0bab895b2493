// Creates the ledger of won and lost leads, from which reports read: rows are only added, so the
// figures of a closed month stay. The outcomes of earlier versions are rebuilt from the event log,
// and those that it lacks from the leads. Each lead and each of its four kinds of events is read
// once, through an index.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, money, nullable, oneOf, references, text, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTables(db, dialect)
  await bookEvents(db, dialect)
  await bookLeads(db, dialect)
  await bookGroupsAndProducts(db)
}

async function createTables(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'lead_outcomes',
    {
      id: id(),
      /** Not a foreign key, because an outcome outlives its lead. So do all references below. */
      lead_id: integer(),
      /** `passed` and `dropped`: the lead has left a stage, for another one or as lost. */
      kind: oneOf(['won', 'lost', 'passed', 'dropped']),
      /** 1, or -1 for a row that takes back `reverses_id`, with the opposite amount and seconds. */
      sign: integer(),
      reverses_id: nullable(integer()),
      /** The time in whose month the row counts. */
      at: timestamp(),
      closed_at: nullable(timestamp()),
      amount: money(),
      /** The time from the creation to the end, or the time in the stage. */
      seconds: integer(),
      user_id: nullable(integer()),
      person_id: nullable(integer()),
      lead_source_id: integer(),
      lead_type_id: integer(),
      lead_pipeline_id: integer(),
      lead_pipeline_stage_id: integer(),
      lost_reason: nullable(text()),
      ...Object.fromEntries(names.map((name) => [name, nullable(text())])),
    },
    { indexes: [['lead_id', 'id']] },
  )
  // All columns of reports, which therefore read no row.
  await sql`create index lead_outcomes_report_index on lead_outcomes (kind, at, id, user_id, person_id, lead_source_id,
    lead_type_id, lead_pipeline_id, lead_pipeline_stage_id, sign, amount, seconds, reverses_id)`.execute(db)
  await createTable(
    db,
    dialect,
    'lead_outcome_groups',
    { outcome_id: references('lead_outcomes', 'cascade'), group_id: integer(), name: text() },
    { primaryKey: ['outcome_id', 'group_id'] },
  )
  await createTable(
    db,
    dialect,
    'lead_outcome_products',
    {
      id: id(),
      outcome_id: references('lead_outcomes', 'cascade'),
      product_id: nullable(integer()),
      name: text(),
      sku: text(),
      amount: money(),
      quantity: money(),
    },
    { indexes: [['outcome_id', 'product_id', 'amount', 'quantity']] },
  )
}

const names = ['user_name', 'source_name', 'type_name', 'pipeline_name', 'stage_name']
const ids = ['lead_source_id', 'lead_type_id', 'lead_pipeline_id', 'lead_pipeline_stage_id']
const about = sql.raw(['closed_at', 'user_id', 'person_id', 'lost_reason', ...ids, ...names].join(', '))

/** The seconds between two times, whose type differs between the engines. */
const secondsBetween = ({ name }: Dialect, from: RawBuilder<unknown>, to: RawBuilder<unknown>): RawBuilder<unknown> =>
  name === 'postgres'
    ? sql`greatest(0, trunc(extract(epoch from (${to})) - extract(epoch from (${from}))))::bigint`
    : sql`max(0, cast(strftime('%s', ${to}) as integer) - cast(strftime('%s', ${from}) as integer))`

/**
 * Books each win, loss and restore of the log with the snapshot of its event, and takes it back at
 * the next event that ends it. The ids have the order of the events: 2e for the row of event e, and
 * one less for the row that takes back the outcome before it.
 */
async function bookEvents(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const field = (path: string) => dialect.jsonText('happened.after', path)
  const whole = (path: string) => sql`cast(${field(path)} as bigint)`
  const time = (path: string) =>
    dialect.name === 'postgres' ? sql`(${field(path)})::timestamptz` : sql`${field(path)}`
  const closed = sql`coalesce(${time('closed_at')}, happened.created_at)`
  await sql`insert into lead_outcomes (id, lead_id, kind, sign, at, amount, seconds, ${about})
    select 2 * happened.id, happened.entity_id, case ${field('status')} when '2' then 'won' else 'lost' end, 1,
      case happened.name when 'lead.restore' then happened.created_at else ${closed} end,
      cast(round(cast(${field('lead_value')} as numeric) * 10000) as bigint),
      ${secondsBetween(dialect, time('created_at'), closed)}, ${closed},
      ${whole('user_id')}, ${whole('person_id')}, ${field('lost_reason')},
      ${sql.join(ids.map(whole))},
      ${sql.join(names.map((name) => field(name.replace('_', '.'))))}
    from events as happened
    where happened.name in ('lead.won', 'lead.lost', 'lead.restore') and happened.entity_type = 'leads'
      and ${field('status')} in ('2', '3')`.execute(db)
  await sql`insert into lead_outcomes (id, lead_id, kind, sign, reverses_id, at, amount, seconds, ${about})
    select 2 * following - 1, lead_id, kind, -1, booked.id, ends, -amount, -seconds, ${about}
    from lead_outcomes as booked
    join (
      select id, lead(id) over own as following, lead(created_at) over own as ends from events
      where name in ('lead.won', 'lead.lost', 'lead.restore', 'lead.reopened', 'lead.delete.after')
        and entity_type = 'leads'
      window own as (partition by entity_id order by id)) as happened on booked.id = 2 * happened.id
    where following is not null`.execute(db)
  if (dialect.name === 'postgres') {
    const next = sql`(select coalesce(max(id), 0) + 1 from lead_outcomes)`
    await sql`select setval(pg_get_serial_sequence('lead_outcomes', 'id'), ${next}, false)`.execute(db)
  }
}

/** The last row of the lead, if it stands. */
const standing = sql.raw(`lead_outcomes.lead_id = leads.id and lead_outcomes.sign = 1 and lead_outcomes.id =
  (select max(own.id) from lead_outcomes as own where own.lead_id = leads.id)`)

/** Makes the rows of closed leads equal to the leads; owner and value stay those of the win. */
async function bookLeads(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const same = sql.raw(
    ['person_id', 'lost_reason', 'closed_at', ...ids].map((name) => `${name} = leads.${name}`).join(),
  )
  const at = sql`case when lead_outcomes.closed_at = leads.closed_at then lead_outcomes.at else leads.closed_at end`
  await sql`update lead_outcomes set at = ${at}, ${same} from leads where ${standing} and leads.status <> 1`.execute(db)
  const values = sql`leads.closed_at, leads.user_id, leads.person_id, leads.lost_reason,
    ${sql.join(ids.map((name) => sql.ref(`leads.${name}`)))}, users.name, lead_sources.name, lead_types.name,
    lead_pipelines.name, lead_pipeline_stages.name`
  const kind = sql`case leads.status when 2 then 'won' else 'lost' end`
  const isKnown = sql`exists (select 1 from lead_outcomes as own where own.lead_id = leads.id)`
  await sql`insert into lead_outcomes (lead_id, kind, sign, at, amount, seconds, ${about})
    select leads.id, ${kind}, 1, case when ${isKnown} then leads.updated_at else leads.closed_at end, leads.lead_value,
      ${secondsBetween(dialect, sql`leads.created_at`, sql`leads.closed_at`)}, ${values}
    from leads
    left join users on users.id = leads.user_id
    join lead_sources on lead_sources.id = leads.lead_source_id
    join lead_types on lead_types.id = leads.lead_type_id
    join lead_pipelines on lead_pipelines.id = leads.lead_pipeline_id
    join lead_pipeline_stages on lead_pipeline_stages.id = leads.lead_pipeline_stage_id
    where leads.status <> 1 and leads.closed_at is not null
      and not exists (select 1 from lead_outcomes where ${standing})`.execute(db)
  const changed = sql`from lead_outcomes join leads on ${standing}
    where leads.status <> 1 and lead_outcomes.amount <> leads.lead_value`
  const copied = sql.raw(`lead_outcomes.closed_at, lead_outcomes.user_id, lead_outcomes.person_id,
    lead_outcomes.lost_reason, ${[...ids, ...names].map((name) => `lead_outcomes.${name}`).join()}`)
  await sql`insert into lead_outcomes (lead_id, kind, sign, reverses_id, at, amount, seconds, ${about})
    select lead_id, kind, -1, lead_outcomes.id, leads.updated_at, -amount, -seconds, ${copied} ${changed}`.execute(db)
  const taken = sql.raw(`from lead_outcomes join leads on leads.id = lead_outcomes.lead_id
    where lead_outcomes.sign = -1 and leads.status <> 1 and lead_outcomes.id =
      (select max(own.id) from lead_outcomes as own where own.lead_id = leads.id)`)
  await sql`insert into lead_outcomes (lead_id, kind, sign, at, amount, seconds, ${about})
    select lead_id, kind, 1, at, leads.lead_value, -seconds, ${copied} ${taken}`.execute(db)
}

/** The log does not know the groups of a user, so they are those of today. */
async function bookGroupsAndProducts(db: Kysely<unknown>): Promise<void> {
  await sql`insert into lead_outcome_groups (outcome_id, group_id, name)
    select lead_outcomes.id, groups.id, groups.name from lead_outcomes
    join user_groups on user_groups.user_id = lead_outcomes.user_id
    join groups on groups.id = user_groups.group_id where lead_outcomes.sign = 1`.execute(db)
  await sql`insert into lead_outcome_products (outcome_id, product_id, name, sku, amount, quantity)
    select lead_outcomes.id, product_id, name, sku, lead_products.amount, quantity
    from leads join lead_outcomes on ${standing} join lead_products on lead_products.lead_id = leads.id`.execute(db)
}
