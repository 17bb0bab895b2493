// Reads leads for the limit server with prepared statements and joins. The keys are in the order of
// the contract, because both servers must reply with the same bytes.
import { createHash, createHmac, hkdfSync } from 'node:crypto'
import type { Database, Statement } from 'better-sqlite3'
import { type Cells, columns, contacts, joins, presentRow, scale } from './limit.lead.ts'

type Query = Record<string, string | undefined>

/** The highest number of leads that `q` counts, and that other filters count. */
const most = 1_000
const mostFiltered = 50_000

const filters = ['user_id', 'lead_pipeline_stage_id', 'status']
const sorts = ['id', 'created_at', 'lead_value', 'title']
const sortColumn: Record<string, string> = { title: 'title_key' }

export function createReader(database: Database, { base, secret }: { base: string; secret: string }) {
  const kept = new Map<string, Statement<unknown[]>>()
  /** Returns a cached statement that returns rows as arrays. */
  function prepared(text: string, how: 'raw' | 'pluck' = 'raw'): Statement<unknown[]> {
    let statement = kept.get(text)
    if (statement === undefined) {
      statement = database.prepare<unknown[]>(text)[how]()
      kept.set(text, statement)
    }
    return statement
  }
  const marks = (count: number): string => Array(count).fill('?').join(', ')
  const byIds = (count: number, order: string) =>
    prepared(`select ${columns} from leads l ${joins} where l.id in (${marks(count)}) order by ${order}`)
  const fingerprintKey = Buffer.from(hkdfSync('sha256', secret, '', 'accord:fingerprint:1', 32))
  const seal = (text: string): string => createHmac('sha256', fingerprintKey).update(text).digest('hex').slice(0, 22)
  const hasPieces =
    database.prepare(`select 1 from sqlite_schema where name = 'search_index_pieces'`).get() !== undefined
  /** The mark in cursors of the default list, the only list with cursors on the limit server. */
  const listMark = createHash('sha256')
    .update(JSON.stringify(['/api/admin/leads', [['id', true]], []]))
    .digest('base64url')
    .slice(0, 16)

  function present(rows: Cells[], now = Date.now()) {
    const ids = rows.map((row) => row[0])
    const replies = new Map(rows.map((row) => [row[0] as number, presentRow(row, now)]))
    const tags = prepared(
      `select k.lead_id, t.id, t.name, t.color from lead_tags k join tags t on t.id = k.tag_id where k.lead_id in (${marks(ids.length)}) order by t.name_key`,
    ).all(...ids) as [number, number, string, string][]
    for (const [lead, id, name, color] of tags) replies.get(lead)?.tags.push({ id, name, color })
    const lines = prepared(
      `select k.lead_id, k.id, k.product_id, k.name, k.sku, k.quantity, k.price, k.amount, p.sku, p.name, k.created_at, k.updated_at
       from lead_products k left join products p on p.id = k.product_id where k.lead_id in (${marks(ids.length)}) order by k.id`,
    ).all(...ids) as Cells[]
    for (const [
      lead,
      id,
      product_id,
      name,
      sku,
      quantity,
      price,
      amount,
      nowSku,
      nowName,
      created_at,
      updated_at,
    ] of lines) {
      const reply = replies.get(lead as number)
      if (!reply) continue
      reply.products_amount += amount as number
      reply.products.push({
        id,
        product_id,
        name,
        sku,
        quantity: (quantity as number) / scale,
        price: (price as number) / scale,
        amount: (amount as number) / scale,
        product: product_id === null ? null : { id: product_id, sku: nowSku, name: nowName },
        created_at,
        updated_at,
      })
    }
    for (const reply of replies.values()) reply.products_amount /= scale
    return [...replies.values()]
  }

  /** Returns a lead. `now` is the time that a write uses. */
  function show(id: number, now?: number) {
    const rows = byIds(1, 'l.id').all(id) as Cells[]
    return rows.length === 0 ? undefined : present(rows, now)[0]
  }

  /** Returns the statement and the bound values for a query. */
  function shapeOf(query: Query) {
    const used = filters.filter((name) => query[name] !== undefined)
    const where = used.length === 0 ? '' : `where ${used.map((name) => `l.${name} = ?`).join(' and ')}`
    const sent = query.sort ?? '-id'
    const name = sent.startsWith('-') ? sent.slice(1) : sent
    if (!sorts.includes(name)) throw new Error(`No sort ${name}.`)
    const direction = sent.startsWith('-') ? 'desc' : 'asc'
    const order = name === 'id' ? `l.id ${direction}` : `l.${sortColumn[name] ?? name} ${direction}, l.id ${direction}`
    return { where, order, values: used.map((name) => Number(query[name])) }
  }

  /** A page of leads. `ids` has one id more when the list has more leads than `total` counts. */
  interface Found {
    total: number
    isExact: boolean
    ids: number[]
    order: string
  }

  function pageOf(query: Query, size: number, offset: number): Found {
    const { where, order, values } = shapeOf(query)
    if (query.q !== undefined) return { ...matching(query.q, size, offset), order }
    const counted =
      values.length === 0
        ? 'select count(*) from leads'
        : `select count(*) from (select 1 from leads l ${where} limit ${mostFiltered + 1})`
    const total = prepared(counted, 'pluck').get(...values) as number
    const isExact = values.length === 0 || total <= mostFiltered
    const text = `select l.id from leads l ${where} order by ${order} limit ? offset ?`
    const ids = prepared(text, 'pluck').all(...values, isExact ? size : size + 1, offset) as number[]
    return { total: isExact ? total : mostFiltered, isExact, ids, order }
  }

  /**
   * Returns a page of leads that contain these words, newest first. The trigram index returns
   * candidates, which are then checked. If there are many, all leads are checked until the page is
   * full.
   */
  function matching(q: string, size: number, offset: number): Omit<Found, 'order'> {
    const words = [...new Set(q.toLowerCase().split(/\s+/).filter(Boolean))]
    const test = `(l.title_key like ? escape '\\' or fold(l.description) like ? escape '\\' or p.name_key like ? escape '\\'
      or o.name_key like ? escape '\\' or exists (select 1 from json_each(p.emails) e where instr(fold(e.value ->> '$.value'), ?) > 0))`
    const pieces = words
      .filter((word) => word.length > 2)
      .flatMap((word) => [...word.slice(2)].map((_, at) => word.slice(at, at + 3)))
    const isIndexed = pieces.length > 0 && hasPieces
    const tests = words.map(() => test).join(' and ')
    const values = words.flatMap((word) => {
      const pattern = `%${word.replace(/[\\%_]/g, '\\$&')}%`
      return [pattern, pattern, pattern, pattern, word]
    })
    const match = pieces.map((piece) => `"${piece.replaceAll('"', '""')}"`).join(' AND ')
    const first = isIndexed
      ? `from (select rowid >> 4 as id from search_index_pieces where search_index_pieces match ? and (rowid & 15) = 3) c
        cross join leads l on l.id = c.id ${contacts}`
      : `from leads l ${contacts}`
    const some = prepared(`select l.id ${first} where ${tests} limit ${most + 1}`, 'pluck')
    const ids = some.all(...(isIndexed ? [match] : []), ...values) as number[]
    if (ids.length <= most) {
      ids.sort((one, other) => other - one)
      return { total: ids.length, isExact: true, ids: ids.slice(offset, offset + size) }
    }
    const walk = prepared(
      `select l.id from leads l ${contacts} where ${tests} order by l.id desc limit ? offset ?`,
      'pluck',
    )
    return { total: most, isExact: false, ids: walk.all(...values, size + 1, offset) as number[] }
  }

  function list(path: string, search: string, query: Query) {
    if (query.cursor !== undefined) return cursorPage(path, search, query.cursor, Number(query.per_page ?? 10))
    const size = Number(query.per_page ?? 10)
    const number = Number(query.page ?? 1)
    const offset = (number - 1) * size
    const { total, isExact, ids, order } = pageOf(query, size, offset)
    const shown = ids.slice(0, size)
    const data = shown.length === 0 ? [] : present(byIds(shown.length, order).all(...shown) as Cells[])
    const last = isExact ? Math.max(1, Math.ceil(total / size)) : null
    const isMore = isExact ? offset + data.length < total && data.length > 0 : ids.length > size
    const link = linksTo(path, search, 'page')
    return {
      data,
      links: {
        first: link('1'),
        last: last === null ? null : link(`${last}`),
        prev: number > 1 ? link(`${Math.min(number - 1, last ?? number)}`) : null,
        next: isMore ? link(`${number + 1}`) : null,
      },
      meta: {
        current_page: number,
        from: data.length > 0 ? offset + 1 : null,
        last_page: last,
        path: base + path,
        per_page: size,
        to: data.length > 0 ? offset + data.length : null,
        total,
        is_total_exact: isExact,
      },
    }
  }

  /** Returns a function that builds the URL of this request with another value for a parameter. */
  function linksTo(path: string, search: string, name: string): (value: string) => string {
    const parameters = new URLSearchParams(search)
    parameters.set(name, '~')
    const [before = '', after = ''] = parameters.toString().split(`${name}=%7E`)
    return (value) => `${base}${path}?${before}${name}=${value}${after}`
  }

  /** Supports only forward paging, because the benchmark does not page backward. */
  function cursorPage(path: string, search: string, cursor: string, size: number) {
    let from = Number.MAX_SAFE_INTEGER
    if (cursor !== '') {
      const text = cursor.slice(22)
      if (seal(text) !== cursor.slice(0, 22)) throw new Error('Not a cursor of ours.')
      from = (JSON.parse(Buffer.from(text, 'base64url').toString()) as { at: [number] }).at[0]
    }
    const text = `select ${columns} from leads l ${joins} where l.id < ? order by l.id desc limit ?`
    const found = prepared(text).all(BigInt(from), size + 1) as Cells[]
    const data = present(found.slice(0, size))
    const cursorAt = (id: number | undefined, back: boolean): string => {
      const body = Buffer.from(JSON.stringify({ at: [id], back, of: listMark })).toString('base64url')
      return seal(body) + body
    }
    const next = found.length > size ? cursorAt(data.at(-1)?.id as number, false) : null
    const prev = data.length > 0 && cursor !== '' ? cursorAt(data[0]?.id as number, true) : null
    const link = linksTo(path, search, 'cursor')
    return {
      data,
      links: { first: link(''), last: null, prev: prev && link(prev), next: next && link(next) },
      meta: {
        current_page: null,
        from: null,
        last_page: null,
        path: base + path,
        per_page: size,
        to: null,
        total: null,
        is_total_exact: null,
        next_cursor: next,
        prev_cursor: prev,
      },
    }
  }

  return {
    show,
    list,
    prepared,
    presentIds: (ids: number[]) => present(byIds(ids.length, 'l.id desc').all(...ids) as Cells[]),
  }
}

export type Reader = ReturnType<typeof createReader>
export type Lead = NonNullable<ReturnType<Reader['show']>>
