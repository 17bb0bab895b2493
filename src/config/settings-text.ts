// Prints the table of settings as text: the .env template, the README's table (compared by
// test/readme.test.ts) and the end of `accord serve --help`.
import { type Setting, settingGroups, settings } from './settings.ts'

const fixedDefaultOf = (setting: Setting): string => (typeof setting.default === 'string' ? setting.default : '')

/**
 * The text of a new .env: every setting, commented out, so that the file changes nothing until it
 * is edited.
 */
export function envTemplate(): string {
  const head = '# Settings of Accord CRM. Remove the # before a line to set it; the environment overrides this file.\n'
  const groups = Object.entries(settingGroups).map(([title, group]) => {
    const lines = Object.values(group).map((setting) => {
      const { name, unit, meaning, defaultInWords } = setting
      const value = fixedDefaultOf(setting)
      const comments = [meaning, unit && `Unit: ${unit}.`, defaultInWords && `Unset: ${defaultInWords}.`].filter(
        Boolean,
      )
      return `${comments.map((comment) => `# ${comment}\n`).join('')}#${name}=${value.includes(' ') ? `"${value}"` : value}\n`
    })
    return `\n# ── ${title} ──\n\n${lines.join('\n')}`
  })
  return head + groups.join('')
}

/** The rows of the README's table. */
export const settingsTable = (): string =>
  [
    '| Variable | Default | Meaning |',
    '| --- | --- | --- |',
    ...Object.values<Setting>(settings).map(
      (setting) => `| \`${setting.name}\` | ${shownDefault(setting, '`')} | ${setting.meaning} |`,
    ),
  ].join('\n')

/** The text at the end of `accord serve --help`. */
export const settingsHelp = (): string =>
  Object.values<Setting>(settings)
    .map((setting) => `  ${setting.name} (${shownDefault(setting, '')})\n      ${setting.meaning}`)
    .join('\n')

function shownDefault(setting: Setting, quote: string): string {
  const { defaultInWords, unit } = setting
  return defaultInWords ?? `${quote}${fixedDefaultOf(setting)}${quote}${unit ? ` ${unit}` : ''}`
}
