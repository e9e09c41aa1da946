/** Holds a value against a definition of one of the schemas; does nothing where they are not there. */
export declare function expectFits(value: unknown, file: string, definition?: string): void;
