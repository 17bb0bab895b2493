// Prints the table of settings as text: as the .env template, as the table in config/README.md, and
// as the end of `accord serve --help`. test/readme.test.ts compares the README with this table.
import type { Setting } from './setting.ts'
import { settingGroups, settings } from './settings.ts'

const fixedDefaultOf = (setting: Setting): string => (typeof setting.default === 'string' ? setting.default : '')

/**
 * Returns the text of a new .env file. Every setting is commented out, so the file has no effect
 * until a user edits it.
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

export const settingsTable = (): string =>
  [
    '| Variable | Default | Meaning |',
    '| --- | --- | --- |',
    ...Object.values<Setting>(settings).map(
      (setting) => `| \`${setting.name}\` | ${shownDefault(setting, '`')} | ${setting.meaning} |`,
    ),
  ].join('\n')

export const settingsHelp = (): string =>
  Object.values<Setting>(settings)
    .map((setting) => `  ${setting.name} (${shownDefault(setting, '')})\n      ${setting.meaning}`)
    .join('\n')

function shownDefault(setting: Setting, quote: string): string {
  const { defaultInWords, unit } = setting
  return defaultInWords ?? `${quote}${fixedDefaultOf(setting)}${quote}${unit ? ` ${unit}` : ''}`
}
