// On Apple's systems the sources of Plugins/Apple/CoreBluetooth are this module (Package.swift); elsewhere it is the other's name.
@_exported public import CoreBluetooth
