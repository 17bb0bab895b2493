// PDFs and charts in the packed program: its subprocesses find their modules, and end with the
// server.
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { type Strained, strained } from '../faults/serving.ts'
import { needing } from '../support/programs.ts'

let server: Strained | undefined
afterEach(() => server?.stop())

/** Returns the process ids of the drawing subprocesses of this program. */
const drawing = (): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`accord-${process.pid}-`) &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('offload.entry.js')
      )
    } catch {
      return false
    }
  })

async function ask(path: string, accept: string): Promise<{ status: number; type: string | null; body: string }> {
  const { url, token = '' } = server ?? {}
  const answer = await fetch(`${url}/api/admin${path}`, { headers: { authorization: `Bearer ${token}`, accept } })
  const body = Buffer.from(await answer.arrayBuffer()).toString('latin1')
  return { status: answer.status, type: answer.headers.get('content-type'), body }
}

needing('/proc').describe('the packed program', () => {
  it('prints a quote and draws a chart in subprocesses that end with it', async () => {
    server = await strained()
    expect(drawing()).toEqual([])
    const quote = {
      subject: 'Packed',
      person_id: 1,
      expiry_date: '2030-01-01',
      billing_address: { address: 'Main Street 1', city: 'Berlin', country: 'DE', postcode: '10115' },
      items: [],
    }
    const created = await fetch(`${server.url}/api/admin/quotes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.token}`,
        accept: 'application/json',
        'content-type': 'application/json',
      },
      body: JSON.stringify(quote),
    })
    const { data } = (await created.json()) as { data: { id: number } }
    const printed = await ask(`/quotes/${data.id}/print`, '*/*')
    expect([printed.status, printed.type, printed.body.slice(0, 5)]).toEqual([200, 'application/pdf', '%PDF-'])
    const chart = await ask('/reports/total-leads', 'image/svg+xml')
    expect([chart.status, chart.type, chart.body.slice(0, 4)]).toEqual([200, 'image/svg+xml', '<svg'])
    expect(drawing().length).toBe(1)
    await server.stop()
    server = undefined
    expect(drawing()).toEqual([])
  }, 180_000)
})
