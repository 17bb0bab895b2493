// Tests for every proxy: it must forward events immediately and files of the maximum size. The
// tests of nginx and Caddy use them.
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { file, form } from '../support/form.ts'
import { readStream } from '../support/sse.ts'

export interface Front {
  /** The address of the proxy. */
  url: string
  token: string
}

/** Sends a request, and repeats it while the busy server refuses it. */
export async function sendThrough(
  { url, token }: Front,
  method: string,
  path: string,
  body: BodyInit | null = null,
  more: Record<string, string> = {},
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', ...more }
  let reply = await fetch(`${url}/api/admin${path}`, { method, body, headers })
  for (let tries = 0; reply.status === 503 && tries < 10; tries++) {
    await setTimeout(1_000)
    reply = await fetch(`${url}/api/admin${path}`, { method, body, headers })
  }
  return reply
}

export function passesEventsAndFiles(front: () => Front): void {
  it('passes each event of the change feed at once', async () => {
    const { url, token } = front()
    const reader = await readStream(`${url}/api/admin/events`, token)
    expect(reader.status).toBe(200)
    const body = JSON.stringify({ name: 'Hot' })
    await sendThrough(front(), 'POST', '/tags', body, { 'content-type': 'application/json' })
    expect((await reader.until(1)).map(({ event }) => event)).toContain('settings.tag.create.after')
    reader.cut()
  })

  it('passes the largest allowed file, and the refusal of a larger one', async () => {
    const mebibyte = 1024 * 1024
    const upload = async (size: number): Promise<Response> => {
      const { body, headers } = await form({ file: file('figures.bin', new Uint8Array(size)) })
      return sendThrough(front(), 'POST', '/files', new Uint8Array(body), headers)
    }
    expect((await upload(25 * mebibyte)).status).toBe(201)
    const refused = await upload(25 * mebibyte + 1)
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([413, 'payload_too_large'])
  })
}

/** Returns whether the proxy and the server behind it are ready. */
export const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
