// Two users continuously print a quote with 200 items and request charts, while during.ts measures
// the wait of a reader.

interface Drawing {
  tokens: string[]
  quote: number
}

const charts = ['overview', 'revenue-stats', 'total-leads', 'top-persons', 'open-leads-by-stages', 'forecast']
const password = 'correct horse battery'

async function call<T>(url: string, path: string, token: string, body: object): Promise<T> {
  const answer = await fetch(`${url}/api/admin${path}`, {
    method: 'POST',
    headers: { accept: 'application/json', authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}: ${await answer.text()}`)
  return ((await answer.json()) as { data: T }).data
}

/** Creates the largest quote the contract allows, with the longest names, and two users. */
export async function prepareDrawing(url: string, token: string): Promise<Drawing> {
  const tokens: string[] = []
  for (const name of ['first', 'second']) {
    const email = `${name}.printer@example.com`
    await call(url, '/settings/users', token, {
      name,
      email,
      password,
      password_confirmation: password,
      role_id: 1,
      view_permission: 'global',
      is_active: true,
    })
    const { token: own } = await call<{ token: string }>(url, '/login', '', { email, password, device_name: 'bench' })
    tokens.push(own)
  }
  const product = await call<{ id: number }>(url, '/products', token, { sku: 'PRINTED', name: 'Printed', price: 1 })
  const item = { product_id: product.id, name: 'long '.repeat(51).trim(), quantity: 1, price: 1 }
  const quote = await call<{ id: number }>(url, '/quotes', token, {
    subject: 'Printed again and again',
    person_id: 1,
    expiry_date: '2030-01-01',
    billing_address: { address: 'Main Street 1', city: 'Berlin', country: 'DE', postcode: '10115' },
    items: Array.from({ length: 200 }, () => item),
  })
  return { tokens, quote: quote.id }
}

/** Returns the number of drawings. Each user has two concurrent requests, so one always waits. */
export async function drawFor(url: string, { tokens, quote }: Drawing, seconds: number): Promise<number> {
  const over = performance.now() + seconds * 1000
  let drawn = 0
  async function ask(path: string, token: string, accept: string): Promise<void> {
    const answer = await fetch(`${url}/api/admin${path}`, { headers: { authorization: `Bearer ${token}`, accept } })
    await answer.arrayBuffer()
    if (answer.ok) drawn++
    else if (answer.status !== 503) throw new Error(`GET ${path} answered ${answer.status}.`)
  }
  async function print(token: string): Promise<void> {
    while (performance.now() < over) await ask(`/quotes/${quote}/print`, token, '*/*')
  }
  async function chart(token: string): Promise<void> {
    for (let turn = 0; performance.now() < over; turn++)
      await ask(`/reports/${charts[turn % charts.length]}`, token, 'image/svg+xml')
  }
  await Promise.all(tokens.flatMap((token) => [print(token), chart(token)]))
  return drawn
}
