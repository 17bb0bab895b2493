// Placeholders in templates (DOMAIN 18.4): `{%leads.title%}` stands for what people read of a field of the record at hand, or of its
// person, user or organization. What means nothing stays as it is and is reported.
export type Placeholders = ReadonlyMap<string, string>
export type Into = 'text' | 'html' | 'json' | 'url'

const pattern = /\{%\s*([a-z_]+(?:\.[a-z0-9_]+)?)\s*%\}/g
/** Filled in when a campaign is sent, by the campaign. */
const later = new Set(['unsubscribe_url'])

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A value as it may stand in the text around it, so that it stays a value. */
const escapes: Record<Into, (value: string) => string> = {
  text: (value) => value.replace(/\s*\n\s*/g, ', '),
  html: (value) => value.replace(/[&<>"']/g, (char) => entities[char] ?? char).replaceAll('\n', '<br>'),
  json: (value) => JSON.stringify(value).slice(1, -1),
  url: (value) => encodeURIComponent(value),
}

/** The template with its placeholders filled in, and the names of those that mean nothing, each once. */
export function fillIn(template: string, values: Placeholders, into: Into): { filled: string; unknown: string[] } {
  const unknown = new Set<string>()
  const filled = template.replace(pattern, (whole, name: string) => {
    const value = values.get(name)
    if (value !== undefined) return escapes[into](value)
    if (!later.has(name)) unknown.add(name)
    return whole
  })
  return { filled, unknown: [...unknown] }
}
