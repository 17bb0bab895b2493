// Invalid input for every operation, generated from the contract: each property and parameter
// violates its schema in every possible way. The reply names the field, is never a 5xx, and nothing
// is written.
import { describe, expect, it } from 'vitest'
import {
  bodySchema,
  creatorOfUpsert,
  fact,
  facts,
  isQuestion,
  parametersOf,
  takesHeader,
  takesLines,
  typesOf,
} from '../support/schema.ts'
import { type Breakage, badTexts, breakagesOf, danglingReferences } from './breakages.ts'
import { changesNothing, type Request, request, send, short } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()

const ids = facts.filter(([, each]) => each.servedBy === 'handler').map(([id]) => id)
// A body of bytes has no fields, so its errors are 400.
const withBody = ids.filter((id) => bodySchema(id) !== undefined && !fact(id).takesBytes && !takesLines(id))
const isMass = (id: string): boolean => /\/mass-\w+$/.test(fact(id).path)

/** Sends the request. Returns a sentence if the reply is not a 422 with exactly these fields. */
async function refusal(
  id: string,
  wanted: Request,
  fields: readonly string[],
  what: string,
  hint = false,
): Promise<string[]> {
  const { status, body, text } = await send(world, id, wanted)
  const named = Object.keys(body?.errors ?? {}).sort()
  const expected = [...fields].sort()
  if (status !== 422 || body.code !== 'validation_failed' || JSON.stringify(named) !== JSON.stringify(expected)) {
    return [
      `${what}: expected 422 on ${expected.join(', ')}; got ${status} ${body?.code ?? ''} on ${named.join(', ') || 'nothing'} (${short(text)})`,
    ]
  }
  const sentences = Object.values<string[]>(body.errors).flat()
  if (hint && !sentences.some((each) => each.includes('Did you mean')))
    return [`${what}: no hint in ${sentences.join(' ')}`]
  return []
}

/** Runs checks that must change nothing, and returns their findings and changes. */
async function findingsOf(work: () => Promise<string[]>): Promise<string[]> {
  let found: string[] = []
  const traces = await changesNothing(world, async () => {
    found = await work()
  })
  return [...found, ...traces]
}

async function eachRefused(id: string, breakages: Iterable<Breakage>): Promise<string[]> {
  const found: string[] = []
  for (const { field, what, value, hint } of breakages) {
    if (field === '') continue
    found.push(...(await refusal(id, { ...request(world, id), body: value }, [field], `${field} ${what}`, hint)))
  }
  return found
}

describe.each(withBody)('%s', (id) => {
  it('names the field that is wrong, whichever it is and whatever is wrong with it', async () => {
    const valid = request(world, id).body
    // The groups of a question repeat its fields, and a view those of its question.
    const repeated = id.startsWith('query') ? /^where\.(and|or|not)\.\d/ : /^where\./
    const breakages = [...breakagesOf(bodySchema(id), valid)].filter(
      ({ field }) => !isQuestion(id) || !repeated.test(field),
    )
    expect(await findingsOf(() => eachRefused(id, breakages))).toEqual([])
  })

  it('names every reference that leads nowhere', async () => {
    const valid = request(world, id).body
    const dangling =
      isMass(id) || isQuestion(id) ? [] : danglingReferences(bodySchema(id), valid, (entity) => world.main[entity])
    expect(await findingsOf(() => eachRefused(id, dangling))).toEqual([])
  })
})

// Only operations with dry runs, because a valid variant of the body would otherwise be executed.
describe.each(withBody.filter((id) => !isMass(id) && !isQuestion(id) && takesHeader(id, 'Accord-Dry-Run')))(
  '%s',
  (id) => {
    it('names a reference that leads nowhere together with what the schema refuses', async () => {
      const found = await findingsOf(async () => {
        const sentences: string[] = []
        const { body, ...rest } = request(world, id)
        for (const { field, value } of danglingReferences(bodySchema(id), body, (entity) => world.main[entity]))
          sentences.push(
            ...(await refusal(id, { ...rest, body: { ...(value as object), nope: 1 } }, [field, 'nope'], field)),
          )
        return sentences
      })
      expect(found).toEqual([])
    })
  },
)

describe.each(ids)('%s', (id) => {
  it('names every query parameter that is wrong or unknown', async () => {
    const found = await findingsOf(async () => {
      const sentences: string[] = []
      for (const batch of batches(id)) {
        const { url, ...rest } = request(world, id)
        const query = batch.map(([name, text]) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`).join('&')
        const fields = [...new Set(batch.map(([name]) => `query.${name}`))]
        sentences.push(...(await refusal(id, { ...rest, url: `${url}?${query}` }, fields, `?${short(query)}`)))
      }
      const [known] = parametersOf(id, 'query').map(({ name }) => name.replace(/\[.*/, ''))
      const typo = known === undefined ? 'nope' : `${known}q`
      for (const name of [typo, '__proto__', 'constructor', 'token']) {
        const { url, ...rest } = request(world, id)
        sentences.push(
          ...(await refusal(
            id,
            { ...rest, url: `${url}?${name}=1` },
            [`query.${name}`],
            `?${name}`,
            name === typo && known !== undefined,
          )),
        )
      }
      return sentences
    })
    expect(found).toEqual([])
  })
})

const takingBack = withBody.filter((id) => (fact(id).ignorable?.keys.length ?? 0) > 0)

describe.each(takingBack.filter((id) => fact(id).method === 'post'))('%s', (id) => {
  it('refuses every key that only replies have, at its place', async () => {
    const { body, ...rest } = request(world, id)
    const found = await findingsOf(async () => {
      const sentences: string[] = []
      for (const key of fact(id).ignorable?.keys ?? [])
        sentences.push(...(await refusal(id, { ...rest, body: { ...body, [key]: 2 } }, [key], `${key} is read-only`)))
      return sentences
    })
    expect(found).toEqual([])
  })
})

// An upsert of a new record names the fields that its creation lacks, too.
describe.each(takingBack.filter((id) => fact(id).method === 'put' && creatorOfUpsert(id) === undefined))('%s', (id) => {
  it('refuses a body of nothing but keys that only replies have', async () => {
    const { body: _writable, ...rest } = request(world, id)
    const keys = fact(id).ignorable?.keys ?? []
    const body = Object.fromEntries(keys.map((key) => [key, 2]))
    expect(await findingsOf(() => refusal(id, { ...rest, body }, keys, 'nothing can be written'))).toEqual([])
  })
})

/**
 * Returns invalid texts for all query parameters, in requests with as many parameters as a query
 * string may have.
 */
function batches(id: string): [name: string, text: string][][] {
  const parameters = parametersOf(id, 'query').map(({ name, schema }) => ({
    name,
    texts: badTexts(schema),
    twice: typesOf(schema)[0] !== 'array',
  }))
  const rounds: [string, string][][] = []
  const most = Math.max(0, ...parameters.map(({ texts }) => texts.length))
  for (let round = 0; round < most; round++) {
    rounds.push(
      parameters.flatMap(({ name, texts }): [string, string][] =>
        texts.slice(round, round + 1).map((text): [string, string] => [name, text]),
      ),
    )
  }
  const twice = parameters
    .filter(({ twice }) => twice)
    .flatMap(({ name }): [string, string][] => [
      [name, '1'],
      [name, '2'],
    ])
  if (twice.length > 0) rounds.push(twice)
  return rounds.flatMap(packed)
}

function packed(pairs: [string, string][]): [string, string][][] {
  const packs: [string, string][][] = []
  let room = 0
  for (const pair of pairs) {
    const size = encodeURIComponent(pair[0]).length + encodeURIComponent(pair[1]).length + 2
    if (size > room) {
      packs.push([])
      room = 7000
    }
    packs.at(-1)?.push(pair)
    room -= size
  }
  return packs
}

describe.each(ids.filter((id) => parametersOf(id, 'query').some(({ name }) => name === 'cursor')))('%s', (id) => {
  it('refuses a cursor of its own invention, and page together with cursor', async () => {
    const found = await findingsOf(async () => {
      const { url, ...rest } = request(world, id)
      const cursors = [
        'garbage',
        'e30',
        Buffer.from('null').toString('base64url'),
        Buffer.from('{"at":[{}],"back":false,"of":""}').toString('base64url'),
      ]
      const queries = [...cursors.map((cursor) => `cursor=${cursor}`), 'page=1&cursor=']
      const sentences: string[] = []
      for (const query of queries)
        sentences.push(...(await refusal(id, { ...rest, url: `${url}?${query}` }, ['query.cursor'], `?${query}`)))
      return sentences
    })
    expect(found).toEqual([])
  })
})

describe.each(ids.filter((id) => parametersOf(id, 'query').some(({ name }) => name === 'fields')))('%s', (id) => {
  it('refuses a field no record has', async () => {
    const { url, ...rest } = request(world, id)
    for (const query of ['fields=id,nope', 'fields=__proto__', 'fields=constructor']) {
      expect.soft(await refusal(id, { ...rest, url: `${url}?${query}` }, ['query.fields'], `?${query}`)).toEqual([])
    }
  })
})

describe.each(ids.filter((id) => parametersOf(id, 'header').length > 0))('%s', (id) => {
  it('names the header that is wrong', async () => {
    const bad: Record<string, string> = {
      'If-Match': `"${'1'.repeat(300)}"`,
      'If-None-Match': `"${'1'.repeat(1100)}"`,
      'Idempotency-Key': 'k'.repeat(256),
      'Accord-Dry-Run': 'maybe',
    }
    const found = await findingsOf(async () => {
      const sentences: string[] = []
      for (const [name, text] of Object.entries(bad)) {
        if (takesHeader(id, name))
          sentences.push(
            ...(await refusal(
              id,
              { ...request(world, id), headers: { [name.toLowerCase()]: text } },
              [`header.${name}`],
              name,
            )),
          )
      }
      return sentences
    })
    expect(found).toEqual([])
  })
})
