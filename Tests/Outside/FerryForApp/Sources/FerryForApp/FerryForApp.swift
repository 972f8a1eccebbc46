@_exported import Ferry
@_exported import FerryRecords
