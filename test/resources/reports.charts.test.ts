// What readers see in a chart: the headline, the range that is drawn, bars or lines, and signs.
import { describe, expect, it } from 'vitest'
import {
  forecastChart,
  overviewChart,
  shownBuckets,
  totalLeadsChart,
} from '../../src/resources/reports/charts/charts.ts'
import type { Chart } from '../../src/resources/reports/charts/draw.ts'
import { drawSvg } from '../../src/resources/reports/charts/draw.ts'
import { queryChart } from '../../src/resources/reports/charts/query-chart.ts'
import { changeText, countText, moneyText, percentText, shortMoney } from '../../src/resources/reports/charts/texts.ts'

const tongue = { locale: 'en-GB', currency: 'EUR' }
const period = (start: string, end: string, days: number) => ({
  period: { range: { start, end, previous_start: start, previous_end: end }, days, zone: 'utc' },
  today: '2026-03-15',
  tongue,
})
const monthsOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `2026-${String(index + 1).padStart(2, '0')}`)

/** Returns the texts of a drawn chart in their order. */
async function textsOf(chart: Chart): Promise<string[]> {
  const svg = await drawSvg(chart)
  return [...svg.matchAll(/<text [^>]*>([^<]+)<\/text>/g)].map(([, text = '']) => text)
}

describe('shownBuckets', () => {
  const read = {
    labelOf: ({ month }: { month: string }) => month,
    hasData: ({ count }: { count: number }) => count > 0,
  }
  const shown = (counts: readonly number[], today = '2026-03-15'): string[] =>
    shownBuckets(
      counts.map((count, index) => ({ month: monthsOf(12)[index] ?? '', count })),
      { today },
      'month',
      read,
    ).map(({ month, count }) => `${Number(month.slice(5))}:${count}`)

  it.each<[string, number[], string[]]>([
    ['begins with the first data', [0, 0, 2], ['3:2']],
    ['has zeros in between', [1, 0, 2, 0, 3], ['1:1', '2:0', '3:2', '4:0', '5:3']],
    ['shows a standstill until today', [1, 0, 0, 0, 0], ['1:1', '2:0', '3:0']],
    ['has no empty future', [0, 0, 0, 4, 0], ['4:4']],
    ['is whole without any data', [0, 0], ['1:0', '2:0']],
  ])('%s', (_rule, counts, expected) => {
    expect(shown(counts)).toEqual(expected)
  })
})

describe('a chart over time', () => {
  const statistics = (counts: readonly number[]) => {
    const over_time = (share: number) =>
      counts.map((count, index) => ({
        label: monthsOf(12)[index] ?? '',
        count: Math.floor(count * share),
        lead_value: count * 1000 * share,
      }))
    const figure = { previous: 0, current: 0, change_percent: null }
    const of = (share: number) => ({ total: figure, over_time: over_time(share) })
    return { all: of(1), won: of(0.5), lost: of(0) } as unknown as Parameters<typeof totalLeadsChart>[0]
  }
  const year = period('2026-01-01', '2026-12-31', 365)

  it('has bars for few points and lines for many', async () => {
    const few = totalLeadsChart(statistics([0, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0]), year)
    expect(JSON.stringify(few.spec)).not.toContain('"line"')
    const drawn = await textsOf(few)
    expect(drawn).toContain('6 created · 3 won · 0 lost')
    expect(drawn).toContain('Mar 2026')
    expect(drawn).not.toContain('Feb 2026')
    expect(drawn).not.toContain('Dec 2026')
    const many = totalLeadsChart(statistics([1, 0, 0, 0, 0, 0, 1]), year)
    expect(JSON.stringify(many.spec)).toContain('"line"')
  })

  it('says the sum of a forecast first, for readers of the description too', async () => {
    const months = monthsOf(12).map((month, index) => ({
      month,
      count: index === 4 ? 2 : 0,
      lead_value: index === 4 ? 3000 : 0,
      weighted_value: index === 4 ? 1500 : 0,
    }))
    const chart = forecastChart(months as Parameters<typeof forecastChart>[0], year)
    expect(await textsOf(chart)).toContain('€1,500 weighted, of €3,000')
    expect(await drawSvg(chart)).toContain('€1,500 weighted, of €3,000. May 2026: €3,000, weighted €1,500.')
  })

  it('has no headline without data', async () => {
    const chart = totalLeadsChart(statistics([0, 0, 0]), year)
    expect([chart.headline, chart.summary]).toEqual([null, 'No leads were created, won or lost in this period.'])
    expect(await textsOf(chart)).toContain(chart.summary)
  })
})

describe('the chart of a question', () => {
  const data = (rows: object[], more: object = {}) =>
    ({
      measure: 'won_value',
      unit: 'money',
      group_by: 'month',
      period: { from: '2026-01-01', to: '2026-12-31' },
      compared: null,
      rows,
      total: { key: null, label: 'Total', value: 100, previous: null, change_percent: null },
      is_complete: true,
      ...more,
    }) as unknown as Parameters<typeof queryChart>[0]
  const row = (key: string, value: number, label = key) => ({ key, label, value, previous: null, change_percent: null })
  const about = { tongue, today: '2026-03-15' }

  it('names months as the locale does, and begins and ends with data', async () => {
    const chart = queryChart(
      data([row('2026-01', 0), row('2026-02', 100), row('2026-03', 0), row('2026-04', 0)]),
      'Won',
      about,
    )
    const drawn = await textsOf(chart)
    expect(drawn).toEqual(expect.arrayContaining(['€100', 'Feb 2026', 'Mar 2026']))
    expect(drawn).not.toContain('2026-01')
    expect(drawn).not.toContain('Apr 2026')
  })

  it('keeps the rows for overdue leads and for those without a date', async () => {
    const rows = [row('overdue', 5, 'Overdue'), row('2026-03', 0), row('2026-04', 0), row('no_date', 7, 'No date')]
    const drawn = await textsOf(queryChart(data(rows), 'Expected', about))
    expect(drawn).toEqual(expect.arrayContaining(['Overdue', 'Apr 2026', 'No date']))
  })

  it('escapes the names of records', async () => {
    const svg = await drawSvg(queryChart(data([row('1', 5, '<script>x</script>')], { group_by: 'user' }), 'Won', about))
    expect(svg).not.toContain('<script')
  })
})

describe('numbers in charts', () => {
  const plain = (text: string): string => text.replaceAll(/[\u00a0\u202f\u200e\u061c]/g, ' ').trim()

  it.each(['en-US', 'de', 'fr', 'es', 'sv-SE', 'ja-JP', 'he', 'ar-EG'])('have a true minus in %s', (locale) => {
    const place = { locale, currency: 'EUR' }
    for (const text of [
      moneyText(-5, place),
      shortMoney(-1e6, place),
      countText(-3, place),
      changeText(-16.5, place),
    ]) {
      expect(text).toContain('\u2212')
      expect(text).not.toContain('-')
    }
  })

  it('have the percent sign of the locale', () => {
    expect(plain(percentText(66.666, { locale: 'de' }))).toBe('66,67 %')
    expect(percentText(66.666, { locale: 'en-GB' })).toBe('66.67%')
    expect(changeText(0, { locale: 'en-GB' })).toBe('0%')
  })

  it('show a fall in the overview with a minus', async () => {
    const fall = { previous: 4, current: 2, change_percent: -50 }
    const figures = {
      average_lead_value: fall,
      total_leads: fall,
      average_leads_per_day: fall,
      total_quotes: fall,
      total_persons: fall,
      total_organizations: fall,
    } as Parameters<typeof overviewChart>[0]
    expect(await textsOf(overviewChart(figures, period('2026-01-01', '2026-01-30', 30)))).toContain('\u221250%')
  })
})
