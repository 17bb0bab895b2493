// Shortens a text without cutting a character, such as an emoji, into halves, which no database
// stores.

/** Returns at most `length` UTF-16 units of a text. */
export const cutText = (text: string, length: number): string =>
  text.length <= length ? text : text.slice(0, length).replace(/[\ud800-\udbff]$/, '')
