// The command line of `accord import`.
import { type Command, Option } from 'commander'
import { jsonOption, withExamples } from './command-help.ts'
import { readEnvironment } from './environment.ts'

export function addImportCommand(program: Command): void {
  withExamples(
    program
      .command('import')
      .description('validate a CSV or XLSX file, then create, change or delete a record for each row')
      .argument('<file>', 'a .csv or .xlsx file whose first row names the columns')
      .addOption(
        new Option('--type <type>', 'type of the records')
          .choices(['persons', 'organizations', 'products', 'leads'])
          .makeOptionMandatory(),
      )
      .addOption(
        new Option('--action <action>', 'append creates or changes records')
          .choices(['append', 'delete'])
          .default('append'),
      )
      .option('--skip-errors', 'skip invalid rows instead of importing nothing')
      .option('--allowed-errors <number>', 'how many errors to tolerate without --skip-errors', '0')
      .option(
        '--replace-lists',
        'replace the e-mail addresses and phone numbers of matching persons instead of adding to them',
      )
      .option('--omit-invalid-cells', 'import a row without the invalid cells of its optional fields')
      .option('--map <header=field...>', 'the field of a column; nothing after = leaves the column out')
      .option('--separator <character>', 'column separator: , ; | or \\t; default: that of the file')
      .option('--encoding <name>', 'character encoding, such as windows-1252; default: that of the file')
      .addOption(new Option('--date-format <order>', 'order of day, month and year').choices(['dmy', 'mdy', 'ymd']))
      .addOption(new Option('--decimal <character>', 'character before the decimals').choices(['.', ',']))
      .option('--yes', 'import with the suggested settings without asking')
      .option('--as <email>', 'user who owns the import; default: ACCORD_ADMIN_EMAIL')
      .addOption(jsonOption()),
    'accord import persons.csv --type persons',
    "accord import leads.csv --type leads --separator ';' --skip-errors --as ada@example.com",
    'accord import accounts.xlsx --type organizations --map Company=name --map Remarks= --yes',
  )
    .addHelpText(
      'after',
      '\nAt a terminal, the command shows what it found out about a file with other headers, dates or numbers,\n' +
        'and asks. Elsewhere such a file needs --yes or the options. Invalid rows are written beside the file,\n' +
        'in its format, with their errors.',
    )
    .action(async (file, options) => (await import('./import.ts')).importCommand(readEnvironment(), file, options))
}
