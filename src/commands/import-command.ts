// The command lines of `accord import`, `accord export` and `accord bulk`.
import { Argument, type Command, Option } from 'commander'
import { jsonOption, readEnvironment, withExamples } from './command-parts.ts'

/** Adds `accord import`, `accord export` and `accord bulk`. */
export function addImportCommand(program: Command): void {
  addExportCommand(program)
  addBulkCommand(program)
  withExamples(
    program
      .command('import')
      .description('validate a CSV, XLSX or vCard file, then create, change or delete a record for each row')
      .argument('<file>', 'a .csv or .xlsx file whose first row names the columns, or a .vcf file')
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
      .option('--create-attributes', 'make custom attributes of the columns that fill no field')
      .option('--dry-run', 'check the file, show what would be imported and created, and change nothing')
      .option('--separator <character>', 'column separator: , ; | or \\t; default: that of the file')
      .option('--encoding <name>', 'character encoding, such as windows-1252; default: that of the file')
      .addOption(new Option('--date-format <order>', 'order of day, month and year').choices(['dmy', 'mdy', 'ymd']))
      .addOption(new Option('--decimal <character>', 'character before the decimals').choices(['.', ',']))
      .addOption(
        new Option('--missing-names <how>', 'persons without a name: refuse, or fill from another column').choices([
          'refuse',
          'fill',
        ]),
      )
      .addOption(
        new Option('--unknown-references <how>', 'names that no record has').choices(['refuse', 'omit', 'create']),
      )
      .option('--yes', 'import with the suggested settings without asking')
      .option('--as <email>', 'user who owns the import; default: ACCORD_ADMIN_EMAIL')
      .addOption(jsonOption()),
    'accord import persons.csv --type persons',
    "accord import leads.csv --type leads --separator ';' --skip-errors --as ada@example.com",
    'accord import accounts.xlsx --type organizations --map Company=name --map Remarks= --yes',
    'accord import contacts.csv --type persons --create-attributes --dry-run',
  )
    .addHelpText(
      'after',
      '\nAt a terminal, the command shows what it found out about a file with other headers, dates or numbers,\n' +
        'and asks. Elsewhere it says so first, and such a file needs --yes or the options. --create-attributes\n' +
        'guesses number, date, boolean or text from the first rows, and a refused file creates none; --map Header=\n' +
        'leaves a column out. Invalid rows are written beside the file, in its format, with their errors.',
    )
    .action(async (file, options) => (await import('./import.ts')).importCommand(readEnvironment(), file, options))
}

function addExportCommand(program: Command): void {
  withExamples(
    program
      .command('export')
      .description('write all records of a type as CSV, XLSX or JSON lines')
      .addArgument(
        new Argument('<type>', 'type of the records').choices([
          'persons',
          'organizations',
          'products',
          'leads',
          'quotes',
          'activities',
        ]),
      )
      .addOption(
        new Option('--format <format>', 'format of the file').choices(['csv', 'xlsx', 'ndjson']).default('csv'),
      )
      .addOption(
        new Option('--separator <character>', 'column separator of a CSV file; Excel may expect ;')
          .choices([',', ';', '\\t'])
          .default(','),
      )
      .option('--bom', 'begin with a byte order mark, by which Excel recognizes UTF-8; default with ;')
      .option('--no-bom', 'begin without a byte order mark')
      .addOption(
        new Option('--timezone <zone>', 'time zone of times in a CSV file')
          .choices(['utc', 'installation'])
          .default('utc'),
      )
      .option('--output <file>', 'file to write; default: the standard output')
      .option('--as <email>', 'user whose visible records are written; default: ACCORD_ADMIN_EMAIL'),
    'accord export persons > persons.csv',
    "accord export leads --separator ';' --output leads.csv",
    'accord export products --format xlsx --output products.xlsx',
  ).action(async (type, options) => (await import('./export.ts')).exportCommand(readEnvironment(), type, options))
}

function addBulkCommand(program: Command): void {
  withExamples(
    program
      .command('bulk')
      .description('send the lines of a file to POST /bulk of a server and print its answers')
      .argument('<file>', 'a file with a JSON object per line (NDJSON): op, type, id or external_id, fields')
      .option('--url <url>', 'origin of the server; default: the server of these settings')
      .option('--token-stdin', 'read the token from the first line of standard input')
      .option('--token <token>', 'token on the command line, where other users of this machine can read it')
      .addOption(
        new Option('--on-error <what>', 'what to do after a refused line')
          .choices(['continue', 'stop'])
          .default('continue'),
      )
      .option('--dry-run', 'try up to 1,000 lines and write nothing')
      .option('--key <key>', 'Idempotency-Key; default: one that follows from the file')
      .option('--output <file>', 'file for the answers; default: the standard output'),
    'accord token create --email ada@example.com --name bulk | accord bulk changes.ndjson --token-stdin',
    'accord bulk changes.ndjson --url https://crm.example.com --token-stdin --output answers.ndjson < token.txt',
  )
    .addHelpText(
      'after',
      '\nAfter a cut or a kill, the same command with the same token continues: lines that were carried out are\n' +
        'not carried out again within 24 hours, and their answers are printed again. The exit code is 1 if a line\n' +
        'was refused.',
    )
    .action(async (file, options) => (await import('./bulk.ts')).bulkCommand(readEnvironment(), file, options))
}
