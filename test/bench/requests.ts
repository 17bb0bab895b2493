// Generates the requests of the benchmark, one kind per row of the table. The generator is seeded,
// so both servers get the same requests in the same order. Repetitions are rare.
import { type Random, randomOf } from '../fuzz/random.ts'
import type { Asked } from '../support/connection.ts'
import { sizes } from './fill.insert.ts'

export const kinds = [
  'list',
  'filtered',
  'sorted',
  'q',
  'page 1000',
  'cursor',
  'show',
  'kanban',
  'create',
  'update',
  'stage',
  'login',
] as const
export type Kind = (typeof kinds)[number]

export const isWrite = (kind: Kind): boolean => ['create', 'update', 'stage', 'login'].includes(kind)

export interface World {
  leads: number
  email: string
  password: string
}

const things = 'sensors pumps laptops valves panels scanners robots filters drives cables turbines ovens'.split(' ')
const get = (path: string): Asked => ({ method: 'GET', path: `/api/admin${path}` })

const filter = (random: Random): string =>
  random.chance(0.5) ? `user_id=${random.whole(1, 10)}` : `lead_pipeline_stage_id=${random.whole(1, 6)}`

/** Returns one of several sort keys, so that no index serves both all filters and all sorts. */
const sort = (random: Random): string => random.pick(['-lead_value', 'lead_value', '-created_at', 'created_at'])

const draw: Record<Kind, (random: Random, world: World, walk: Walk) => Asked> = {
  list: (random) => get(`/leads?page=${random.whole(1, 20)}`),
  filtered: (random) => get(`/leads?${filter(random)}&page=${random.whole(1, 5)}`),
  sorted: (random) => get(`/leads?${filter(random)}&sort=${sort(random)}&page=${random.whole(1, 5)}`),
  q: (random) => get(`/leads?q=${random.pick(things)}%20${random.whole(10, 999)}`),
  'page 1000': (random, { leads }) => {
    const last = Math.min(1000, Math.ceil(leads / 10))
    return get(`/leads?page=${random.whole(Math.max(1, last - 100), last)}`)
  },
  cursor: (_random, _world, walk) => get(`/leads?cursor=${walk.next}&per_page=${walk.next === '' ? walk.first : 10}`),
  show: (random, { leads }) => get(`/leads/${random.whole(1, leads)}`),
  kanban: (random) => get(`/leads/kanban?pipeline_id=1${random.chance(0.5) ? '&page=1' : ''}`),
  create: (random, { leads }) => ({
    method: 'POST',
    path: '/api/admin/leads',
    body: JSON.stringify({
      title: `Benchmark of ${random.pick(things)} ${random.whole(1, 999_999)}`,
      lead_value: random.whole(1, 99_999) / 4,
      person_id: random.whole(1, sizes(leads, 'some').persons),
      lead_source_id: random.whole(1, 5),
      lead_type_id: random.whole(1, 2),
      tag_ids: [random.whole(1, 10), random.whole(11, 20)],
      custom_attributes: { region: random.pick(['north', 'south']), seats: random.whole(1, 500) },
    }),
  }),
  update: (random, { leads }) => ({
    method: 'PUT',
    path: `/api/admin/leads/${random.whole(1, leads)}`,
    body: JSON.stringify({ title: `Another ${random.whole(1, 999_999)}`, lead_value: random.whole(1, 99_999) / 4 }),
  }),
  stage: (random, { leads }) => ({
    method: 'PUT',
    path: `/api/admin/leads/${random.whole(1, leads)}/stage`,
    body: JSON.stringify({ lead_pipeline_stage_id: random.whole(1, 4) }),
  }),
  login: (random, { email, password }) => ({
    method: 'POST',
    path: '/api/admin/login',
    body: JSON.stringify({ email, password, device_name: `bench ${random.whole(1, 99)}` }),
  }),
}

/** The position of a connection in its walk through the whole list by cursor. */
export interface Walk {
  next: string
  /** The page size, which differs between connections, so that their pages differ. */
  first: number
}

export const walkFrom = (first: number): Walk => ({ next: '', first })

/** Moves the walk to the next page. After the last page, it starts again. */
export function walkOn(walk: Walk, body: string): void {
  walk.next = /"next_cursor":"([^"]+)"/.exec(body)?.[1] ?? ''
}

export const requestOf = (kind: Kind, world: World, at: { seed: number; index: number }, walk: Walk): Asked =>
  draw[kind](randomOf(at.seed, at.index), world, walk)
