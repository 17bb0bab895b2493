// Settings for servers in separate processes, and a server with some data for load tests.
import { rmSync } from 'node:fs'
import { accordServing } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'

export const isFull = process.env.ACCORD_TEST_FULL === '1'

/** The settings of servers that are killed and restarted during writes. */
export const environment = {
  ACCORD_LOG_LEVEL: 'info',
  ACCORD_ADMIN_PASSWORD: 'correct horse battery',
  ACCORD_RATE_LIMIT: 'off',
}

const production = { ACCORD_ENV: 'production', ACCORD_WORKER: 'off', ACCORD_ADMIN_PASSWORD: 'correct horse battery' }

export interface Strained {
  url: string
  pid: number
  token: string
  /** Returns the log so far. */
  logged(): string
  stop(): Promise<void>
}

export async function strained(settings: Record<string, string> = {}): Promise<Strained> {
  const folder = await workingFolder()
  const serving = await accordServing(folder, 'serve', { ...production, ...settings })
  const post = async (path: string, body: object, token = ''): Promise<{ id: number; token: string }> => {
    const answer = await fetch(`${serving.url}/api/admin${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    })
    // Waits as Retry-After demands, because the machine may be busy.
    if (answer.status === 503) {
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      return post(path, body, token)
    }
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
    return ((await answer.json()) as { data: { id: number; token: string } }).data
  }
  const stop = async (): Promise<void> => {
    await serving.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  let token = ''
  try {
    const account = { email: 'admin@example.com', password: production.ACCORD_ADMIN_PASSWORD, device_name: 'test' }
    token = (await post('/login', account)).token
    for (let index = 0; index < 20; index++) {
      const emails = [{ value: `person${index}@example.com`, label: 'work' }]
      const { id } = await post('/contacts/persons', { name: `Person ${index}`, emails }, token)
      await post(
        '/leads',
        { title: `Lead ${index}`, lead_value: index, person_id: id, lead_source_id: 1, lead_type_id: 1 },
        token,
      )
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { url: serving.url, pid: serving.pid, token, logged: () => serving.said.stdout, stop }
}
