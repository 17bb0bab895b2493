// References in a body: wherever a body has an id, a hidden record causes the same 422 as an
// unknown id, and nothing changes. A visible record is accepted.
import { beforeAll, describe, it } from 'vitest'
import { validBody } from '../support/given.ts'
import {
  bodySchema,
  creatorOfUpsert,
  entityOf,
  fact,
  facts,
  follow,
  isQuestion,
  isReference,
  type SchemaObject,
  typesOf,
} from '../support/schema.ts'
import { asHadBy, give, giveSome, type People, people, records } from './matrix.scope.ts'
import { type Cells, keep, untouched } from './matrix.ts'
import { type Answer, type Request, request, send, type World } from './support.ts'

interface Place {
  id: string
  path: readonly string[]
  isList: boolean
  entity: string
}

/** The entities of id properties whose names differ from the entity. */
const kinds: Record<string, string> = {
  parent_id: 'emails',
  'participants.users': 'users',
  'participants.persons': 'persons',
  image_file_id: 'files',
  attachment_ids: 'files',
}
const scoped = new Set<string>([...records, 'users', 'files'])

/**
 * Returns the places in an operation's body that accept ids of scoped records, including `changes`
 * and inline records.
 */
function placesOf(id: string): Place[] {
  const within = (schema: SchemaObject, path: readonly string[]): Place[] =>
    Object.entries(schema.properties ?? {}).flatMap(([name, property]): Place[] => {
      const here = [...path, name]
      const shape = follow(property)
      const entity = kinds[here.slice(-2).join('.')] ?? kinds[name] ?? entityOf(name) ?? ''
      const isNamed = kinds[here.slice(-2).join('.')] !== undefined || kinds[name] !== undefined
      const isIds =
        isReference(name, shape) || isNamed || (name === 'entity_id' && 'entity_type' in (schema.properties ?? {}))
      const kind = name === 'entity_id' ? 'leads' : entity
      if (isIds && scoped.has(kind)) return [{ id, path: here, isList: typesOf(shape).includes('array'), entity: kind }]
      return typesOf(shape).includes('object') ? within(shape, here) : []
    })
  return within(bodySchema(id) ?? {}, [])
}

const places = facts.filter(([id, each]) => !each.public && !isQuestion(id)).flatMap(([id]) => placesOf(id))

export function referenceCells(of: () => World, cells: Cells): void {
  let who: People
  let own: World
  let token: string

  beforeAll(async () => {
    await of().server.rewind()
    who = await people(of())
    own = asHadBy(of(), who)
    token = await who.seeing('group')
    // The caller owns the linked records, and the outsider the records without references.
    await give(own, who.caller)
    await giveSome(own, of().spare, who.outsider)
    await giveSome(own, { files: who.upload }, who.caller)
    await keep(own)
  })

  describe.each(places.map((place) => ({ ...place, key: place.path.join('.') })))('$id, $key', (place) => {
    const { id, path, entity } = place
    const key = path.join('.')
    const others: Record<string, () => number | undefined> = {
      users: () => who.outsider,
      ...Object.fromEntries([...records, 'files'].map((each) => [each, () => of().spare[each]])),
    }

    // Every active user may be an owner or a participant.
    const isOpen = entity === 'users' && (path.at(-1) !== 'user_ids' || id.startsWith('handOver'))
    it('takes an id of a record in sight, and none of one out of sight, as if it were not there', async () => {
      const name = `${id}, ${key}`
      const hidden = others[entity]?.() ?? 0
      let missing = ''
      if (isOpen) missing = told(await send(own, id, naming(place, 999_999)), 999_999)
      else
        await untouched(cells, name, own, async () => {
          const answer = await send(own, id, naming(place, hidden))
          cells.check(`${name} of an outsider`, refusal(answer, key), '422')
          missing = told(await send(own, id, naming(place, 999_999)), 999_999)
          cells.check(`${name} of an outsider, compared with none`, told(answer, hidden), missing)
        })
      const mine: Record<string, number | undefined> = { ...own.main, users: who.mate, files: who.upload }
      const seen = isOpen ? hidden : (mine[entity] ?? 0)
      // The parent of a mail cannot be changed.
      if (id !== 'updateEmail' || key !== 'parent_id')
        cells.check(`${name} in sight`, told(await send(own, id, naming(place, seen)), seen) === missing, false)
      await own.server.rewind()
      cells.settle()
    })
  })

  /** Returns a request with the record in this place, and with all other required values. */
  function naming({ id, path, isList }: Place, record: number): Request {
    const value = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), isList ? [record] : record)
    const isNew = fact(id).method === 'post' || creatorOfUpsert(id) !== undefined
    const needed = isNew ? validBody(id, (entity) => own.main[entity], 'required') : {}
    const wanted = request(own, id)
    const merged: Record<string, unknown> = { ...needed, ...(value as Record<string, unknown>) }
    // The inline person is complete.
    const person = validBody('createPerson', () => undefined, 'required')
    if (path[0] === 'person') merged.person = { ...person, ...(merged.person as object) }
    if (path[0] === 'changes') {
      const [collection = ''] = fact(id).path.split('/').slice(-2)
      merged.ids = [own.main[collection] ?? 0]
      delete merged.value
      const { changes } = merged as { changes: Record<string, object> }
      if (path[1] === 'person') merged.changes = { person: { ...person, ...changes.person } }
    }
    if (path[0] === 'entity_id') merged.entity_type = 'leads'
    return { ...wanted, body: merged, token }
  }

  /** Returns `422` if the reply refuses this key, or a record of a mass operation. */
  function refusal({ status, body, text }: Answer, key: string): string {
    const [failed] = body?.failed ?? []
    const isOnKey = Object.keys(body?.errors ?? {}).some((each) => each.startsWith(key))
    return status === 422 && (isOnKey || failed?.status === 422) ? '422' : `${status} ${text}`
  }
}

/** Returns the reply with the id masked. */
function told({ status, body }: Answer, id: number): string {
  const said = JSON.stringify([status, body?.code, body?.errors, body?.failed?.[0]?.detail])
  return said.replaceAll(new RegExp(`\\b${id}\\b`, 'g'), 'it')
}
