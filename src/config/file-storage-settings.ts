// The settings of a bucket for the contents of files. The names of the credentials follow AWS.
import * as parsers from './parsers.ts'
import type { SettingGroup } from './setting.ts'

export const fileStorage = {
  filesUrl: {
    name: 'ACCORD_FILES_URL',
    default: '',
    defaultInWords: 'files/ in the data folder',
    meaning:
      'Bucket for the contents of files, s3://bucket/prefix, of AWS or a compatible server. Several servers share it.',
    parse: parsers.parseFilesUrl,
  },
  s3Endpoint: {
    name: 'ACCORD_S3_ENDPOINT',
    default: '',
    defaultInWords: 'AWS',
    meaning: 'URL of a server that is compatible with S3, such as https://s3.example.com.',
    parse: parsers.parseEndpoint,
  },
  s3Region: {
    name: 'ACCORD_S3_REGION',
    default: '',
    defaultInWords: 'AWS_REGION or the AWS profile; us-east-1 with ACCORD_S3_ENDPOINT',
    meaning: 'Region of the bucket.',
    parse: parsers.parseOptionalText,
  },
  s3AccessKeyId: {
    name: 'ACCORD_S3_ACCESS_KEY_ID',
    default: '',
    defaultInWords: 'AWS_ACCESS_KEY_ID, the AWS profile, or the role of the machine',
    meaning: 'Access key of the bucket. Without it, the credentials are found as by the tools of AWS.',
    parse: parsers.parseOptionalText,
  },
  s3SecretAccessKey: {
    name: 'ACCORD_S3_SECRET_ACCESS_KEY',
    default: '',
    defaultInWords: 'none',
    meaning: 'Secret of that access key.',
    parse: parsers.parseOptionalText,
  },
  s3PathStyle: {
    name: 'ACCORD_S3_PATH_STYLE',
    default: ({ s3Endpoint }) => (s3Endpoint === null ? 'off' : 'on'),
    defaultInWords: 'on with ACCORD_S3_ENDPOINT',
    meaning: 'on writes the bucket into the path, off into the host name.',
    parse: parsers.onOff,
  },
} satisfies SettingGroup
