// A small data set with the same kinds of errors as the real data set.
import type { Texts } from './data.ts'

/**
 * Returns 32 opportunities in all stages, with the misspellings, gaps and date formats of the real
 * files.
 */
export function smallTexts(): Texts {
  const stages = ['Won', 'Lost', 'Engaging', 'Prospecting']
  const lines = Array.from({ length: 32 }, (_, index) => {
    const stage = stages[index % 4] ?? ''
    const isClosed = index % 4 < 2
    const account = index % 8 > 5 ? '' : ['Acme Corporation', 'Cancity'][index % 2]
    const product = ['GTXPro', 'GTX Basic', 'MG Special'][index % 3]
    const agent = ['Moses Frase', 'Vicki Laflamme'][index % 2]
    const engaged = stage === 'Prospecting' ? '' : `${(index % 12) + 1}/${index % 28 || 1}/2016`
    const value = stage === 'Won' ? 100.25 * (index + 1) : 0
    return [
      `OPP${index}`,
      agent,
      product,
      account,
      stage,
      engaged,
      isClosed ? `3/${(index % 3) + 1}/2017` : '',
      isClosed ? value : '',
    ].join(',')
  })
  return {
    accounts:
      'account,sector,year_established,revenue,employees,office_location,subsidiary_of\nAcme Corporation,technolgy,1996,1100.04,2822,United States,\nCancity,retail,2001,718.62,2448,Philipines,\n',
    products: 'product,series,sales_price\nGTX Basic,GTX,550\nGTX Pro,GTX,4821\nMG Special,MG,55\n',
    teams:
      'sales_agent,manager,regional_office\nMoses Frase,Dustin Brinkmann,Central\nVicki Laflamme,Celia Rouche,West\n',
    pipeline: `opportunity_id,sales_agent,product,account,deal_stage,engage_date,close_date,close_value\n${lines.join('\n')}\n`,
  }
}
