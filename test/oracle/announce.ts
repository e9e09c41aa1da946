/** Runs once, before all tests: says whether frames are checked, and stops at once if they should be but cannot. */
import { schemaFolder } from './schemas.ts'

export function setup(): void {
  const folder = schemaFolder()
  if (folder === undefined)
    console.log('oracle: VIVARIUM_SCHEMAS is not set, so frames are not checked against the official schemas (skipped)')
  else console.log(`oracle: frames are checked against the official schemas in ${folder}`)
}
