// The statements that a connection to PostgreSQL prepares.
import { describe, expect, it } from 'vitest'
import { StatementNames } from '../../db/postgres/statement-names.ts'

describe('the name of a statement', () => {
  it('comes with its third use, and is the same on each connection', () => {
    const names = new StatementNames()
    const [one, other] = [new Set<string>(), new Set<string>()]
    expect(names.use('select 1', one)).toBeUndefined()
    expect(names.use('select 1', other)).toBeUndefined()
    const name = names.use('select 1', one)
    expect(name).toBeDefined()
    expect(names.use('select 1', other)).toBe(name)
    expect([...one]).toEqual([name])
    for (let use = 0; use < 3; use++) expect(names.use('select 2', one)).not.toBe(name)
  })

  it('is given to at most 100 statements of a connection, which go on to use theirs', () => {
    const names = new StatementNames()
    const prepared = new Set<string>()
    const use = (text: string): string | undefined => names.use(text, prepared)
    const texts = Array.from({ length: 101 }, (_, index) => `select ${index}`)
    for (let times = 0; times < 2; times++) texts.forEach(use)
    const named = texts.map(use)
    expect([named.filter(Boolean).length, named.at(-1), prepared.size]).toEqual([100, undefined, 100])
    expect(use('select 0')).toBe(named[0])
  })
})
