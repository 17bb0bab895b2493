// Checks that both servers do the same work: they get every kind of request, and their bodies and
// the rows that they write must be equal. Ids, times and secrets that must differ are masked.
import { join } from 'node:path'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { withFunctions } from '../../db/sqlite/functions.ts'
import { type Answer, type Asked, Connection } from '../support/connection.ts'
import { isWrite, type Kind, requestOf, type World, walkFrom, walkOn } from './requests.ts'
import type { Server } from './servers.ts'

const times = /"20\d\d-\d\d-\d\dT[\d:.]+Z"/g
const secrets = /"(?:\d+\|)?[\w-]{43}"/g
const hashes = /"[0-9a-f]{64}"/g
const requestIds = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Masks the times and random values of a written record. */
const foreseen = (text: string): string =>
  text
    .replace(times, '"<time>"')
    .replace(secrets, '"<secret>"')
    .replace(hashes, '"<hash>"')
    .replace(requestIds, '<request>')

/**
 * Throws an error with the first difference. Both servers must run on fresh copies of the same
 * folder.
 */
export async function mustAnswerTheSame(
  servers: readonly [Server, Server],
  kinds: readonly Kind[],
  { world, token, times: count }: { world: World; token: string; times: number },
): Promise<void> {
  const connections = await Promise.all(servers.map(({ url }) => Connection.open(url, token)))
  const walk = walkFrom(7)
  for (const kind of kinds) {
    for (let index = 0; index < count; index++) {
      const asked = requestOf(kind, world, { seed: 1, index }, walk)
      const ask = async (): Promise<string[]> => {
        const bodies: string[] = []
        for (const connection of connections) {
          const { status, body } = await patiently(connection, asked)
          bodies.push(`${status} ${isWrite(kind) ? foreseen(body.toString()) : body}`)
        }
        return bodies
      }
      let [one = '', other = ''] = await ask()
      // The age of a lead in days may change between the two requests, so a difference is checked
      // again.
      if (one !== other && !isWrite(kind)) [one = '', other = ''] = await ask()
      if (one !== other) throw new Error(`${kind}: ${asked.method} ${asked.path} differs.\n${difference(one, other)}`)
      if (!one.startsWith('2')) throw new Error(`${kind}: ${asked.method} ${asked.path} answered ${one}`)
      if (kind === 'cursor') walkOn(walk, one)
    }
  }
  for (const connection of connections) connection.close()
  const [left = '', right = ''] = servers.map(({ folder }) => rowsIn(folder))
  if (left !== right) throw new Error(`Rows in the database differ.\n${difference(left, right)}`)
}

/** Sends a request, and repeats it after a 503. */
async function patiently(connection: Connection, asked: Asked): Promise<Answer> {
  for (let tries = 0; ; tries++) {
    const answer = await connection.ask(asked)
    if (answer.status !== 503 || tries === 50) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Returns all rows that the requests may have written, one per line. */
function rowsIn(folder: string): string {
  const database = withFunctions(new Sqlite(join(folder, 'data/accord.db'), { readonly: true }))
  const some = (text: string): string[] => (database.prepare(text).all() as object[]).map((row) => JSON.stringify(row))
  const newest = (table: string): string[] => some(`select * from ${table} order by rowid desc limit 200`)
  const lines = [
    ...newest('events'),
    ...newest('leads'),
    ...newest('lead_tags'),
    ...newest('search_index'),
    ...some('select * from tokens where id > 2 order by id'),
    ...some(
      `select rowid, title from search_index_words where search_index_words match 'benchmark OR another' order by rowid`,
    ),
  ]
  database.close()
  return foreseen(lines.join('\n').replaceAll('\\"', '"'))
}

/** Returns the first difference with the text around it. */
function difference(one: string, other: string): string {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  const around = (text: string): string => text.slice(Math.max(0, at - 200), at + 200)
  return `accord: …${around(one)}…\nlimit:  …${around(other)}…`
}
