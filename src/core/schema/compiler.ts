/**
 * Chooses who checks values against JSON Schemas: compiled code where the runtime lets code be made, an interpreter where not. Both are
 * loaded when the first schema needs them. The build for the web has a stand-in for this file that knows the interpreter alone.
 */
import type { Compile, Dialect } from './engine.ts'

let mayGenerate: boolean | undefined

/** Whether this runtime lets code be made from text. */
function canGenerateCode(): boolean {
  if (mayGenerate === undefined) {
    try {
      new Function('')
      mayGenerate = true
    } catch {
      mayGenerate = false
    }
  }
  return mayGenerate
}

/** Loads what compiles schemas of a dialect on this runtime. */
export async function loadCompiler(dialect: Dialect): Promise<Compile> {
  if (canGenerateCode()) return (await import('./ajv.ts')).loadAjv(dialect)
  return (await import('./interpreter.ts')).loadInterpreter(dialect)
}
