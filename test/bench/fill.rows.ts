// Inserts contacts, products, leads and their dependents directly, as the program would have stored
// them. Each row is derived from its number, so a database of N leads is always the same.
import type { Database } from 'better-sqlite3'
import { textKey } from '../../db/schema/search-folding.ts'
import { randomOf } from '../fuzz/random.ts'
import { addressOf, born, type Density, type Into, inParts, inserter, type Many, sizes } from './fill.insert.ts'
import { others } from './fill.work.ts'

const firstNames = 'Ada Ben Chloé Dmitri Elif Femi Grace Hiro Ines José Kofi Lena Mei Noor Oskar Priya'.split(' ')
const lastNames = 'Abel Brandt Costa Dahl Eriksen Fischer García Haddad Ivanov Jensen Kim Lopez Moreau Novak'.split(' ')
const kinds = 'Renewal Upgrade Pilot Rollout Support Migration Audit Training Licence Expansion'.split(' ')
const things = 'sensors pumps laptops valves panels scanners robots filters drives cables turbines ovens'.split(' ')
const trades = 'Foods Motors Logistics Energy Textiles Optics Marine Steel Media Pharma'.split(' ')
const regions = ['north', 'south', 'east', 'west', 'center']
const stages = [
  { id: 1, status: 1 },
  { id: 2, status: 1 },
  { id: 3, status: 1 },
  { id: 4, status: 1 },
  { id: 5, status: 2 },
  { id: 6, status: 3 },
]
const dayMs = 24 * 60 * 60 * 1000
/** All records were created in the two years before this day. */
const lastDay = Date.UTC(2026, 0, 1)
const span = 730 * dayMs
const money = 10_000

const stamp = (time: number): string => new Date(time).toISOString()
/** Records are created in the order of their ids. */
const bornAt = (index: number, total: number): number => lastDay - span + Math.floor((index / total) * span)

export function fillRows(database: Database, leads: number, density: Density, seed: number): void {
  const many = sizes(leads, density)
  const into: Into = (table) => inserter(database, table)
  /** The attribute whose unique values are the addresses of persons. */
  const emails = database
    .prepare(`select id from attributes where entity_type = 'persons' and code = 'emails'`)
    .pluck()
    .get() as number
  inParts(database, 1, () => vocabulary(into, many))
  inParts(database, many.organizations, organization(into, many.organizations))
  inParts(database, many.persons, person(into, many, emails))
  inParts(database, leads, lead(into, many, seed))
}

function vocabulary(into: Into, many: Many): void {
  const at = stamp(lastDay - span)
  const [user, tag, product] = [into('users'), into('tags'), into('products')]
  for (let id = 2; id <= many.users; id++) {
    const name = `${firstNames[id]} ${lastNames[id]}`
    const email = `user${id}@example.com`
    user({ name, name_key: textKey(name), email, email_key: email, role_id: 1, ...born(at) })
  }
  for (let id = 1; id <= many.tags; id++)
    tag({ name: `Tag ${id}`, name_key: `tag ${id}`, color: '#FF8800', user_id: 1, ...born(at) })
  for (let id = 1; id <= many.products; id++) {
    const name = `${things[id % things.length]} mark ${id}`
    const key = `sku-${id}`
    product({
      sku: key.toUpperCase(),
      sku_key: key,
      name,
      name_key: name,
      quantity: 10 * money,
      price: priceOf(id),
      ...born(at),
    })
  }
}

const priceOf = (product: number): number => (5 + product) * money + 2_500

function organization(into: Into, total: number): (index: number) => void {
  const insert = into('organizations')
  return (index) => {
    const name = `${lastNames[index % lastNames.length]} ${trades[index % trades.length]} ${index + 1}`
    const user_id = (index % 10) + 1
    insert({ name, name_key: textKey(name), address: addressOf(index), user_id, ...born(stamp(bornAt(index, total))) })
  }
}

function person(into: Into, many: Many, emails: number): (index: number) => void {
  const [insert, key, numbered] = [into('persons'), into('unique_values'), into('person_numbers')]
  return (index) => {
    const id = index + 1
    const first = firstNames[index % firstNames.length] ?? ''
    const last = lastNames[Math.floor(index / 3) % lastNames.length] ?? ''
    const email = `person${id}@example.com`
    const number = `+4930${1_000_000 + id}`
    insert({
      name: `${first} ${last}`,
      name_key: textKey(`${first} ${last}`),
      emails: JSON.stringify([{ value: email, label: 'work' }]),
      contact_numbers: JSON.stringify([{ value: number, label: 'work' }]),
      job_title: 'Buyer',
      job_title_key: 'buyer',
      organization_id: (index % many.organizations) + 1,
      user_id: (index % 10) + 1,
      ...born(stamp(bornAt(index, many.persons))),
    })
    key({ entity_type: 'persons', attribute_id: emails, value: email, entity_id: id })
    numbered({ number: number.replace('+', ''), person_id: id })
  }
}

function lead(into: Into, many: Many, seed: number): (index: number) => void {
  const [insert, tag, line] = [into('leads'), into('lead_tags'), into('lead_products')]
  const hang = others(into, many)
  return (index) => {
    const random = randomOf(seed, index)
    const id = index + 1
    const time = bornAt(index, many.leads)
    const stage = random.pick(stages)
    const title = `${random.pick(kinds)} of ${random.pick(things)} ${id}`
    const user = random.whole(1, many.users)
    const person = random.whole(1, many.persons)
    const later = stamp(time + random.whole(0, 30) * dayMs)
    const isLost = stage.status === 3
    insert({
      title,
      title_key: textKey(title),
      description: random.chance(0.5) ? `They asked for ${random.pick(things)} in ${random.pick(regions)}.` : null,
      lead_value: random.whole(0, 100_000_00) * 100,
      status: stage.status,
      lost_reason: isLost ? 'Price' : null,
      closed_at: stage.status === 1 ? null : later,
      expected_close_date: random.chance(0.7) ? stamp(time + random.whole(10, 200) * dayMs).slice(0, 10) : null,
      stage_changed_at: later,
      user_id: user,
      person_id: person,
      lead_source_id: random.whole(1, 5),
      lead_type_id: random.whole(1, 2),
      lead_pipeline_id: 1,
      lead_pipeline_stage_id: stage.id,
      custom_attributes: JSON.stringify({ region: random.pick(regions), seats: random.whole(1, 500) * money }),
      created_at: stamp(time),
      updated_at: later,
    })
    for (const tagId of few(random.whole(0, 2), () => random.whole(1, many.tags))) tag({ lead_id: id, tag_id: tagId })
    for (const productId of few(random.whole(0, 2), () => random.whole(1, many.products))) {
      const quantity = random.whole(1, 9)
      const price = priceOf(productId)
      const name = `${things[productId % things.length]} mark ${productId}`
      const own = { lead_id: id, product_id: productId, name, sku: `SKU-${productId}` }
      line({ ...own, quantity: quantity * money, price, amount: price * quantity, ...born(stamp(time)) })
    }
    hang(index, { id, user, person, at: later })
  }
}

const few = (count: number, draw: () => number): number[] => [...new Set(Array.from({ length: count }, draw))]
