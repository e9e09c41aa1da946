import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

/** Lines of a file that other processes write. A line counts when its end is written: a file is made before it is filled. */
export function writtenLines(file: string) {
  const lines = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [])
  const line = async (isIt: (line: string, index: number) => boolean): Promise<string> => {
    for (;;) {
      const found = lines().find(isIt)
      if (found !== undefined) return found
      await wait(10)
    }
  }
  return { lines, line }
}

/** Ends a process by the id that it told. Anything else is refused: 0, which an empty text becomes, is the whole group of this process. */
export function killProcess(told: string): void {
  const pid = Number(told)
  if (!Number.isInteger(pid) || pid <= 1) throw new Error(`"${told}" is not the id of a process that a test may kill.`)
  process.kill(pid, 'SIGKILL')
}
