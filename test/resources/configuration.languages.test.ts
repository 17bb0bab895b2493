// The texts for customers: each shipped language is complete, files of the data folder add and
// replace texts, and a mistake in a file is reported and left out.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createLanguages, messageProblems } from '../../src/texts/languages.ts'
import { decimalSeparatorOf, readNumber } from '../../src/texts/numbers.ts'
import { canonicalTag } from '../../src/texts/tags.ts'
import { argumentsOf, englishMessages, shipped, textKeys } from '../../src/texts/texts.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** Returns a data folder with these message files. */
function dataWith(files: Record<string, string | object>): string {
  const folder = mkdtempSync(join(tmpdir(), 'accord-texts-'))
  folders.push(folder)
  mkdirSync(join(folder, 'messages'))
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, 'messages', name), typeof content === 'string' ? content : JSON.stringify(content))
  return folder
}

const picked = async (wanted: (string | null)[], installation = 'en-US', dataDir = '/nowhere') => {
  const { locale, language, say } = await createLanguages(dataDir).pick(wanted, installation)
  return [locale, language, say('quote.name')]
}

describe('the shipped languages', () => {
  it.each([...shipped.keys()])('%s has every text, with the arguments of the English one', (language) => {
    const table = shipped.get(language) ?? {}
    expect(Object.keys(table)).toEqual(textKeys)
    for (const key of textKeys)
      expect([key, argumentsOf(table[key] ?? '', language)]).toEqual([key, argumentsOf(englishMessages[key])])
  })

  it('differ from each other', () => {
    for (const key of ['quote.valid_until', 'error.required', 'unsubscribe.title', 'account.reset'] as const)
      expect(new Set([...shipped.values()].map((table) => table[key])).size).toBe(4)
  })
})

describe('choosing a language', () => {
  it('takes the first with texts, with its region, else that of the installation', async () => {
    expect(await picked(['fr-CA', 'de'])).toEqual(['fr-CA', 'fr', 'Devis'])
    expect(await picked([null, 'es'])).toEqual(['es', 'es', 'Presupuesto'])
    expect(await picked(['xx', 'de'])).toEqual(['de', 'de', 'Angebot'])
    expect(await picked(['xx'], 'de-AT')).toEqual(['de-AT', 'de', 'Angebot'])
    expect(await picked(['de_DE'])).toEqual(['de-DE', 'de', 'Angebot'])
    expect(await picked(['de'], 'de-CH')).toEqual(['de-CH', 'de', 'Angebot'])
    expect(await picked(['not a tag', '', '<script>'], 'nl-NL')).toEqual(['nl-NL', 'en', 'Quote'])
  })

  it('reads tags as people write them', () => {
    const texts = ['de_de', ' FR-ca ', 'zh-hant-tw', 'xx', 'deutsch', 'de-', 'i', '', 'de-1996-1996', 'a'.repeat(40)]
    expect(texts.map(canonicalTag)).toEqual(['de-DE', 'fr-CA', 'zh-Hant-TW', 'xx', null, null, null, null, null, null])
  })
})

describe('message files of the data folder', () => {
  it('add a language and replace single texts; a missing text is of the parent or English', async () => {
    const data = dataWith({
      'nl.json': `\ufeff${JSON.stringify({ 'quote.name': 'Offerte' })}`,
      'de_AT.json': { 'quote.name': 'Anbot' },
      'he.json': { 'quote.name': 'הצעת מחיר' },
      'readme.txt': 'not a language',
    })
    expect(await messageProblems(data)).toEqual([])
    expect(await picked(['nl-BE'], 'en', data)).toEqual(['nl-BE', 'nl', 'Offerte'])
    expect(await picked(['de-AT'], 'en', data)).toEqual(['de-AT', 'de-AT', 'Anbot'])
    const languages = createLanguages(data)
    const austrian = await languages.pick(['de-AT'], 'en')
    expect(austrian.say('quote.total')).toBe('Gesamtbetrag')
    expect((await languages.pick(['nl'], 'en')).say('quote.total')).toBe('Total')
    expect((await languages.pick(['he'], 'en')).direction).toBe('rtl')
  })

  it('are read as ICU: quoted braces, apostrophes, plurals, and no tags', async () => {
    const data = dataWith({
      'nl.json': {
        'quote.name': "Offerte '{x}' zo''n <b>",
        'account.reset_hint': '{minutes, plural, one {één minuut} other {# minuten}}',
      },
    })
    const { say } = await createLanguages(data).pick(['nl'], 'en')
    expect(say('quote.name')).toBe("Offerte {x} zo'n <b>")
    expect([1, 60].map((minutes) => say('account.reset_hint', { minutes }))).toEqual(['één minuut', '60 minuten'])
    expect(say('quote.title', { number: '{braces} <i>' })).toBe('Quote {braces} <i>')
  })

  it('report each mistake, and the text is English then', async () => {
    const data = dataWith({
      'de.json': { 'quote.name': 'Offert {', 'quote.titel': 'x', 'quote.page': '{seite}', 'quote.total': 7 },
      'nl.json': '{ broken',
      'it.json': [],
      'not a tag.json': {},
    })
    const problems = await messageProblems(data)
    expect(problems.map((each) => each.slice(join(data, 'messages').length + 1))).toEqual([
      expect.stringMatching(/^de.json: quote.name is not a message of ICU MessageFormat: .+\.$/),
      'de.json: quote.titel is not a key of a text.',
      'de.json: quote.page has {seite}, which is not an argument of this text.',
      'de.json: quote.total must be a text.',
      'it.json: must be an object of texts by key.',
      expect.stringMatching(/^nl.json: cannot be read: /),
      'not a tag.json: the name must be a language tag such as nl.json or de-AT.json.',
    ])
    expect(await picked(['de'], 'en', data)).toEqual(['de', 'de', 'Angebot'])
    expect(await messageProblems('/nowhere')).toEqual([])
  })
})

describe('numbers as people write them', () => {
  it.each([
    ['de', '1.234,50', '1234.50'],
    ['de', '1.234', '1234'],
    ['de', '1234,5', '1234.5'],
    ['de', '1.234,50 €', '1234.50'],
    ['de', '1.5', null],
    ['de', '1234.50', null],
    ['de', '1,234.50', null],
    ['de', '1.23,4', null],
    ['en', '1,234.50', '1234.50'],
    ['en', '1,234', '1234'],
    ['en', '1,5', null],
    ['en', '1.234,50', null],
    ['de-CH', '1’234.50', '1234.50'],
    ['de-CH', "CHF 1'234.50", '1234.50'],
    ['fr', '1\u202f234,50', '1234.50'],
    ['es', '1234,5', '1234.5'],
    ['ja', '¥1,500', '1500'],
    ['de', '-3', '-3'],
    ['de', 'zwölf', null],
    ['de', '', null],
  ])('%s: %j is %j', (locale, text, expected) => {
    expect(readNumber(text, decimalSeparatorOf(locale))).toBe(expected)
  })
})
