// Work that transactions defer to their shared commit (`Store.deferToCommit`): the search documents
// of all transactions are written together just before the commit. If this fails, all transactions
// fail.

import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { type Db, openImage, openStore } from '../../db/store.ts'
import { statementsOf } from '../support/statements.ts'
import {
  entity,
  found,
  make,
  records,
  remove,
  rename,
  ticks,
  titles,
  whenFinishing,
  whole,
  writesDocuments,
} from './documents.ts'
import { alone, closeAll, commits, failure, file, openAnew, store, turn, write } from './grouped.ts'

beforeEach(openAnew)
afterEach(closeAll)

const words = ['Amber', 'Birch', 'Cedar', 'Dahlia', 'Elder', 'Fennel', 'Ginger']

describe('what is put off', () => {
  it('is done at once for all that share the commit, between the last of them and the commit', async () => {
    const seen = await statementsOf(() => Promise.all(words.map((word) => write((db) => make(db, word)))))
    const documents = seen.flatMap((text, at) => (writesDocuments(text) ? [at] : []))
    // One statement writes all documents, because FTS5 costs more per statement than per record.
    expect(documents).toHaveLength(1)
    expect(seen.findLastIndex((text) => text.startsWith('insert into "organizations"'))).toBeLessThan(documents[0] ?? 0)
    expect(seen.filter((text) => text === 'commit')).toHaveLength(1)
    expect(seen.indexOf('commit')).toBeGreaterThan(documents[0] ?? 0)
    expect(commits()).toBe(1)
    await whole(store)
  })

  it('is done in one statement for all documents that change, and in one for all that go', async () => {
    const ids = await Promise.all(words.map((word) => write((db) => make(db, word))))
    const all = (work: (db: Db, id: number) => Promise<void>) =>
      statementsOf(() => Promise.all(ids.map((id) => write((db) => work(db, id)))))
    const renamed = await all((db, id) => rename(db, id, `Newer ${id}`))
    expect(renamed.filter(writesDocuments)).toHaveLength(1)
    expect((await found(store, 'Newer')).words.sort()).toEqual([...ids].sort())
    const removed = await all(remove)
    expect(removed.filter((text) => text.startsWith('delete from "search_index"'))).toHaveLength(1)
    expect(removed.filter(writesDocuments)).toEqual([])
    await whole(store)
  })

  it('is done in several statements for long texts, each of which takes a moment', async () => {
    const long = words.map((word) => word.padEnd(10_000, '-'))
    const seen = await statementsOf(() => Promise.all(long.map((word) => write((db) => make(db, word)))))
    expect(seen.filter(writesDocuments)).toHaveLength(3)
    expect(commits()).toBe(1)
    await whole(store)
  })

  it('is on the disk and found when each of them is answered', async () => {
    const other = new Sqlite(file, { readonly: true })
    const indexed = other.prepare<[number], string>('select title from search_index where entity_id = ?').pluck()
    const one = async (word: string) => {
      const id = await write((db) => make(db, word))
      expect(indexed.get(id)).toBe(word)
      return id
    }
    const ids = await Promise.all(words.map(one))
    other.close()
    for (const [index, word] of words.entries())
      expect(await found(store, word)).toEqual({ words: [ids[index]], pieces: [ids[index]] })
  })

  it.each([0, 1, 3])(
    'leaves nothing of one that is rolled back, as number %i, and all of the others',
    async (place) => {
      const outcomes = await Promise.allSettled(
        words.slice(0, 4).map((word, index) =>
          write(async (db) => {
            await make(db, word)
            if (index === place) throw new Error(`not ${word}`)
          }),
        ),
      )
      expect(outcomes.map(({ status }) => status === 'rejected')).toEqual([0, 1, 2, 3].map((index) => index === place))
      expect(await titles()).toEqual(words.slice(0, 4).filter((_, index) => index !== place))
      await whole(store)
    },
  )

  it('leaves a document as it was when the change of its record is rolled back', async () => {
    const id = await write((db) => make(db, 'Amber'))
    const changing = [
      write((db) => make(db, 'Birch')),
      failure(write((db) => rename(db, id, 'Cedar').then(() => Promise.reject(new Error('no'))))),
      failure(write((db) => remove(db, id).then(() => Promise.reject(new Error('no'))))),
    ]
    await Promise.all(changing)
    expect(await titles()).toEqual(['Amber', 'Birch'])
    expect((await found(store, 'Amber')).words).toEqual([id])
  })

  it('is the last that several of them say of one record, and nothing of one that has come and gone', async () => {
    const id = await write((db) => make(db, 'Amber'))
    let passing = 0
    const seen = await statementsOf(() =>
      Promise.all([
        write((db) => rename(db, id, 'Birch')),
        write(async (db) => {
          passing = await make(db, 'Passing')
        }),
        write((db) => rename(db, id, 'Cedar')),
        write((db) => remove(db, passing)),
        write((db) => rename(db, id, 'Dahlia')),
      ]),
    )
    expect(seen.filter((text) => text === 'commit')).toHaveLength(1)
    expect(seen.filter((text) => /^(insert into|update|delete from) "search_index"/.test(text))).toHaveLength(1)
    expect(await titles()).toEqual(['Dahlia'])
    expect([(await found(store, 'Cedar')).words, (await found(store, 'Passing')).words]).toEqual([[], []])
    await whole(store)
  })

  it('can be of one that has its own commit', async () => {
    const seen = await statementsOf(() =>
      Promise.all([alone((db) => make(db, 'Amber')), write((db) => make(db, 'Birch'))]),
    )
    expect(seen.filter((text) => text === 'commit' || writesDocuments(text)).map((text) => text.slice(0, 6))).toEqual([
      'insert',
      'commit',
      'insert',
      'commit',
    ])
    expect(await titles()).toEqual(['Amber', 'Birch'])
  })

  it('is refused outside of a transaction', async () => {
    const putOff = () => store.deferToCommit(store.db, [{ entity, id: 1 }])
    await expect(putOff()).rejects.toThrow('outside of a transaction')
    await write((db) => make(db, 'Amber'))
    await expect(putOff()).rejects.toThrow('outside of a transaction')
  })
})

describe('what cannot be finished', () => {
  it('fails for every member, and for no later transaction', async () => {
    await sql`create trigger refused before insert on search_index when new.title = 'Birch'
      begin select raise(abort, 'no such document'); end`.execute(store.db)
    const generation = store.commitGeneration()
    const writing = words.slice(0, 3).map((word) => write((db) => make(db, word)))
    // This transaction waits until the others have failed, and succeeds.
    const behind = alone(async (db) => [await records({ db }), await make(db, 'Dahlia')])
    const reasons = await Promise.all(writing.map(failure))
    expect(reasons.map(String)).toEqual(Array(3).fill(expect.stringContaining('no such document')))
    expect((await behind)[0]).toEqual([])
    expect([await records(), await titles()]).toEqual([['Dahlia'], ['Dahlia']])
    expect(String(await failure(write((db) => make(db, 'Birch'))))).toContain('no such document')
    await sql`drop trigger refused`.execute(store.db)
    await write((db) => make(db, 'Birch'))
    expect([await titles(), store.health()]).toEqual([['Dahlia', 'Birch'], null])
    expect(store.commitGeneration()).not.toBe(generation)
    await whole(store)
  })
})

describe('who comes while it is finished', () => {
  it('begins after the commit and sees it', async () => {
    const seen: unknown[] = []
    const look = async (db: Db) => {
      const other = new Sqlite(file, { readonly: true })
      seen.push([await titles({ db }), other.prepare('select title from search_index').pluck().all()])
      other.close()
    }
    let late: Promise<unknown> | undefined
    whenFinishing(() => {
      late = Promise.all([write(look), alone(look), sql`select 1`.execute(store.db)])
    })
    await Promise.all([write((db) => make(db, 'Amber')), alone(look)])
    await late
    expect(late).toBeDefined()
    expect(seen).toEqual(Array(3).fill([['Amber'], ['Amber']]))
  })
})

describe('closing and copying', () => {
  it.each([
    ['before', 2],
    ['while', 2],
    ['while', 1],
  ])('keep what was put off, %s it is finished, of %i', async (when, members) => {
    const begun: { image?: Promise<Buffer>; closing?: Promise<void> } = {}
    const copy = () => {
      begun.image = store.image()
    }
    const close = () => {
      begun.closing = store.close()
    }
    for (const [act, word] of [
      [copy, 'Amber'],
      [close, 'Birch'],
    ] as const) {
      if (when === 'while') whenFinishing(act)
      const half = async (db: Db) => {
        await make(db, 'Half')
        await turn()
        await make(db, 'Whole')
      }
      const writing = [word, `${word} too`].slice(0, members).map((each) => write((db) => make(db, each)))
      const lost = act === close && when === 'before' ? failure(write(half)) : undefined
      await ticks()
      if (when === 'before') act()
      await Promise.all(writing)
      if (lost) expect(await lost).toBeInstanceOf(Error)
    }
    await begun.closing
    expect(Object.keys(begun)).toEqual(['image', 'closing'])
    const copied = openImage((await begun.image) as Buffer)
    const again = openStore(`sqlite:${file}`)
    try {
      for (const each of [copied, again]) await whole(each)
      const [first, second] = [
        ['Amber', 'Amber too'],
        ['Birch', 'Birch too'],
      ].map((each) => each.slice(0, members))
      expect(await titles(copied)).toEqual(first)
      expect(await titles(again)).toEqual([...(first ?? []), ...(second ?? [])])
    } finally {
      await Promise.all([copied.close(), again.close()])
    }
  })
})
