// Calls API operations inside this process as the users of the demo. The invented data get the same
// events, histories and totals as real data.
import type { App } from '../../app.ts'
import { type OperationFact, operations } from '../../contract/operations.gen.ts'
import type { Body, Data, OperationId } from '../../contract/types.ts'

export interface Api {
  /**
   * Calls an operation. `id` replaces `{id}` in the path. Throws if the server refuses the call.
   */
  call<O extends OperationId>(operation: O, body: Body<O>, id?: number): Promise<Data<O>>
  signOut(): Promise<void>
}

export async function signIn(app: App, email: string, password: string): Promise<Api> {
  const { token } = await send<{ token: string }>(app, 'login', { email, password, device_name: 'demo data' })
  return {
    call: (operation, body, id) => send(app, operation, body, { token, id }),
    signOut: async () => void (await send(app, 'logout', {}, { token })),
  }
}

/** Posts an e-mail as a mail service does. */
export async function postMail(app: App, secret: string, fields: Record<string, string>): Promise<void> {
  const { statusCode, body } = await app.http.inject({
    method: 'POST',
    url: operations.receiveEmail.path,
    query: { secret },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams(fields).toString(),
  })
  if (statusCode >= 300) throw new Error(`receiveEmail answered ${statusCode}: ${body}`)
}

export async function submitForm(app: App, formId: string, values: object): Promise<void> {
  const { statusCode, body } = await app.http.inject({
    method: 'POST',
    url: operations.submitWebForm.path.replace('{form_id}', formId),
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    payload: JSON.stringify(values),
  })
  if (statusCode >= 300) throw new Error(`submitWebForm answered ${statusCode}: ${body}`)
}

async function send<T>(
  app: App,
  operation: OperationId,
  body: unknown,
  { token, id }: { token?: string; id?: number | undefined } = {},
): Promise<T> {
  const { method, path }: OperationFact = operations[operation]
  const reply = await app.http.inject({
    method: method.toUpperCase() as 'POST',
    url: path.replace('{id}', String(id)),
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    payload: JSON.stringify(body),
  })
  if (reply.statusCode >= 300) throw new Error(`${operation} answered ${reply.statusCode}: ${reply.body}`)
  return (reply.json() as { data: T }).data
}
