// Names in twenty languages, found by what people type for them: in the filter `q` of the list and
// in the search, on each engine the same.
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { searchFold, searchWords, textKey } from '../../db/schema/search-folding.ts'
import { useSharedServer } from '../support/using.ts'

/** Names, and the plain forms of their words that people type. */
const names: readonly (readonly [name: string, ...typed: string[]])[] = [
  // Spanish, Portuguese, Catalan
  ['Álvaro Núñez', 'alvaro', 'NUNEZ', 'nunez alvaro'],
  ['José Ibáñez-Peña', 'jose', 'ibanez', 'pena', 'Ibáñez-Peña'],
  ['João Gonçalves', 'joao', 'goncalves'],
  ['Conceição Magalhães', 'conceicao', 'magalhaes'],
  ['Lluís Col·lell', 'lluis', 'collell', 'col·lell'],
  // French
  ['Hélène L’Écuyer', 'helene', "l'ecuyer", 'lecuyer', 'ecuyer', 'L`Ecuyer', 'l´ecuyer'],
  ['François Lefèvre', 'francois', 'lefevre'],
  ['Zoë Cœur', 'zoe', 'coeur', 'CŒUR'],
  ['Aÿmeric d’Orléans', 'aymeric', 'dorleans', 'orleans', "d'orleans", 'D‘Orléans'],
  // German
  ['Straße Groß', 'strasse', 'gross', 'STRASSE', 'GROẞ'],
  ['Jürgen Müller-Lüdenscheidt', 'jurgen', 'muller', 'ludenscheidt', 'Müller-Lüdenscheidt'],
  ['Käthe Weiß', 'kathe', 'weiss', 'Weiß'],
  // Italian
  ['Niccolò Dell’Acqua', 'niccolo', "dell'acqua", 'dellacqua', 'acqua'],
  ['Perù Caffè', 'peru', 'caffe'],
  // Polish, Czech, Slovak, Hungarian, Romanian
  ['Łukasz Źdźbło', 'lukasz', 'zdzblo', 'ŁUKASZ'],
  ['Małgorzata Wójcik', 'malgorzata', 'wojcik'],
  ['Jiří Dvořák', 'jiri', 'dvorak'],
  ['Ľudmila Šťastná', 'ludmila', 'stastna'],
  ['Győző Kővári', 'gyozo', 'kovari'],
  ['Ștefan Țiriac', 'stefan', 'tiriac', 'Ţiriac'],
  // Danish, Norwegian, Swedish, Icelandic
  ['Ørsted Æther', 'orsted', 'aether', 'ØRSTED'],
  ['Åse Sjögren', 'ase', 'sjogren'],
  ['Þórður Guðmundsson', 'thordur', 'gudmundsson'],
  // Turkish, Azerbaijani
  ['İstanbul Işık', 'istanbul', 'isik', 'ISTANBUL', 'IŞIK'],
  ['Çağrı Öztürk', 'cagri', 'ozturk'],
  ['Gülşah Yıldız', 'gulsah', 'yildiz', 'YILDIZ'],
  // Croatian, Serbian
  ['Đorđe Đoković', 'dorde', 'dokovic'],
  ['Željka Čačić', 'zeljka', 'cacic'],
  // Vietnamese
  ['Nguyễn Đức', 'nguyen', 'duc', 'nguyen duc'],
  ['Trần Thị Ngọc Ánh', 'tran', 'thi', 'ngoc', 'anh'],
  // Irish, English
  ['O’Connor-Smith', "o'connor", 'oconnor', 'connor', 'smith', 'O′Connor', 'OʼConnor'],
  ['Siobhán Ó Briain', 'siobhan', 'briain'],
  ['D’Arcy McDonald', 'darcy', 'arcy', 'mcdonald'],
  // Greek
  ['ΣΊΣΥΦΟΣ Παπαδόπουλος', 'σισυφος', 'παπαδοπουλος', 'ΠΑΠΑΔΟΠΟΥΛΟΣ', 'Σίσυφος'],
  ['Ελένη Νικολάου', 'ελενη', 'νικολαου'],
  // Russian, Ukrainian, Bulgarian
  ['Ёлкин Фёдор', 'елкин', 'федор', 'ЁЛКИН'],
  ['Андрей Соловьёв', 'андрей', 'андреи', 'соловьев'],
  ['Їжакевич Ґалаґан', 'їжакевич', 'галаган', 'ҐАЛАҐАН'],
  // Hebrew, Arabic, Persian, Urdu
  ['שָׁלוֹם כֹּהֵן', 'שלום', 'כהן'],
  ['אַבְרָהָם ז׳בוטינסקי', 'אברהם', 'זבוטינסקי'],
  ['أحمد عبد الله', 'احمد', 'عبد', 'الله'],
  ['مُحَمَّد الإدريسي', 'محمد', 'الادريسي'],
  ['فاطمة يحيى', 'فاطمه', 'يحيي', 'فاطمة'],
  ['علی کریمی', 'علي', 'كريمي', 'کریمی'],
  // Hindi, Bengali, Tamil, Thai
  ['राजेश शर्मा', 'राजेश', 'शर्मा'],
  ['রহিম উদ্দিন', 'রহিম', 'উদ্দিন'],
  ['செல்வி முருகன்', 'செல்வி', 'முருகன்'],
  ['สมชาย ใจดี', 'สมชาย', 'ใจดี', 'ใจ'],
  // Chinese, Japanese, Korean
  ['测试联系人 王小明', '小明', '联系', '王小明', '王'],
  ['山田太郎', '太郎', '山田', '山田太郎'],
  ['ｶﾞﾗｽ 工業', 'ガラス', '工業', 'ガラ'],
  ['김철수', '철수', '김철수', '김'],
  // Forms of all languages
  ['ＡＣＭＥ Ｇｍｂｈ', 'acme', 'gmbh', 'ＡＣＭＥ'],
  ['Anna\u00a0Zero\u200bWidth', 'anna', 'zerowidth', 'anna zerowidth'],
  ['Double  Blank', 'double blank', 'Double  Blank'],
  ['Dash – Name — Co', 'dash - name', 'dash name', 'Dash – Name'],
  ['Number ٤٥٦', '456', '٤٥٦'],
  ['Smith & Sons', 'smith & sons', 'smith sons'],
]

const forms: readonly ((typed: string) => string)[] = [
  (typed) => typed,
  (typed) => typed.toUpperCase(),
  (typed) => typed.toLowerCase(),
  (typed) => typed.normalize('NFD'),
  (typed) => typed.normalize('NFKC'),
  (typed) => `  ${typed}  `,
  (typed) => typed.replaceAll(' ', '\u00a0'),
  (typed) => typed.replaceAll(' ', '   '),
  (typed) => `${typed.slice(0, 2)}\u200b${typed.slice(2)}`,
  (typed) => typed.replaceAll(/[!-~]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
  (typed) => typed.replaceAll("'", '’'),
  (typed) => `${typed.charAt(0).toUpperCase()}${typed.slice(1)}`,
  (typed) => (typed.length > 4 && !/['’‘`´ʼ′׳ -]/u.test(typed) ? [...typed].slice(0, -1).join('') : typed),
]

const ids: number[] = []
const server = useSharedServer()
beforeAll(async () => {
  for (const [name] of names) ids.push((await server.admin.post('/contacts/persons', { name })).body.data.id)
})

const byList = async (q: string): Promise<number[]> => {
  const { body } = await server.admin.get('/contacts/persons', { query: { q, per_page: '100' } })
  return body.data.map(({ id }: { id: number }) => id)
}
const bySearch = async (q: string): Promise<number[]> => {
  const { body } = await server.admin.get('/search', { query: { q, types: 'persons', per_page: '100' } })
  return (body.data ?? []).map(({ id }: { id: number }) => id)
}

const pairs = names.flatMap(([name, ...typed], index) => {
  const words = name.split(/[\s\u00a0]+/).filter((word) => /[\p{L}\p{N}]/u.test(word))
  const queries = new Set([...typed, ...words, name].flatMap((text) => forms.map((form) => form(text))))
  return [...queries].map((q) => ({ name, q, id: ids[index] ?? index }))
})

describe('names in twenty languages', () => {
  it('are found by the list and by the search, by every usual form', async () => {
    expect(pairs.length).toBeGreaterThan(2000)
    const missed: string[] = []
    for (const [index, { name, q }] of pairs.entries()) {
      const id = ids[names.findIndex(([each]) => each === name)] ?? index
      if (!(await byList(q)).includes(id)) missed.push(`list: ${name} by ${JSON.stringify(q)}`)
      const isOneLetter = [...searchFold(q)].length < 2 && /\p{Script=Latin}/u.test(q)
      if (!isOneLetter && !(await bySearch(q)).includes(id)) missed.push(`search: ${name} by ${JSON.stringify(q)}`)
    }
    expect(missed).toEqual([])
  }, 120_000)

  it('are folded by SQL as by the program', async () => {
    const { dialect, db } = server.store
    const words = sql.raw(dialect.name === 'postgres' ? 'accord_words' : 'search_words')
    const texts = [...new Set(pairs.flatMap(({ name, q }) => [name, q, `${name} ${q}`]))]
    texts.push('Ж'.repeat(300), 'ﷺ'.repeat(255), 'İ'.repeat(255), `${'Straße '.repeat(60)}ö`, '𝐀'.repeat(300))
    const wrong: unknown[] = []
    for (const text of texts) {
      const given = sql<string>`cast(${text} as text)`
      const asked = sql`select ${dialect.searchFold(given)} as fold, ${dialect.textKey(given)} as key, ${words}(${given}) as words`
      const { rows } = await asked.execute(db)
      const expected = { fold: searchFold(text), key: textKey(text), words: searchWords(text) }
      if (!isDeepStrictEqual({ ...(rows[0] as object) }, expected)) wrong.push([rows[0], expected])
    }
    expect(wrong).toEqual([])
  }, 60_000)
})
