// Builds multipart/form-data bodies for tests. Values are texts or `file(name, content)`. Returns
// the body and its Content-Type header for `post` and `put`.
export interface Form {
  body: Buffer
  headers: Record<string, string>
}

type Part = string | File

export const file = (name: string, content: string | Uint8Array = 'Quarterly figures', type = ''): File =>
  new File([content as BlobPart], name, { type })

export async function form(parts: Record<string, Part | Part[]>): Promise<Form> {
  const data = new FormData()
  for (const [name, sent] of Object.entries(parts))
    for (const part of [sent].flat()) typeof part === 'string' ? data.append(name, part) : data.append(name, part)
  return encode(data)
}

export async function encode(data: FormData): Promise<Form> {
  const written = new Response(data)
  return {
    body: Buffer.from(await written.arrayBuffer()),
    headers: { 'content-type': written.headers.get('content-type') ?? '' },
  }
}
